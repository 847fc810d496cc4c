"""Layouts of other people's files, recognised by what files say."""
from fuel.layouts.call import Call as Call
from fuel.layouts.call import LeftOutSources as LeftOutSources
from fuel.layouts.seen import Seen as Seen
from fuel.layouts.seen import SeenFile as SeenFile
