"""Checks of a log: is its state good enough, and is the description of its system right?"""
