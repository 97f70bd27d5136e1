"""The viewer: a page on which a person gives an instruction and watches an agent carry it out and explain itself.

It needs the extra `viewer`; nothing outside of this folder imports it but the command line, when it is asked to.
"""
