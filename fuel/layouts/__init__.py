"""Layouts of other programs' files, recognised by their contents."""
from fuel.layouts.call import Call as Call
from fuel.layouts.call import LeftOutSources as LeftOutSources
from fuel.layouts.seen import Seen as Seen
from fuel.layouts.seen import SeenFile as SeenFile
