"""One file, one attack; the file's name is its id. A leading underscore marks a file that several share."""
