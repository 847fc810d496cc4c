"""Raw files, as data sets are distributed: archives, images, pickles, MATLAB.

A file may be malicious: nothing in it is executed, names cannot lead out of a
folder, and sizes are limited before a byte is read.
"""
