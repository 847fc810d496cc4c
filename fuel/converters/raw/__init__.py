"""Raw files, as data sets are distributed: archives, images, pickles, MATLAB.

Whoever made a file may be hostile: nothing in it is executed, names cannot
lead out of a folder, and sizes have bounds before a byte is read.
"""
