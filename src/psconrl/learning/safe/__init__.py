"""The safe agent: its baseline, confidence sets, certificates and plans."""
