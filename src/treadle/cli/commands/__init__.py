"""One command a file, each imported when it is used."""
