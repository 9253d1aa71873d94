"""One file, one check of the received model; the file's name is its id. A leading underscore marks a file that several share."""
