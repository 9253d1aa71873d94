"""One file, one server that changes the model; the file's name is its id. A leading underscore marks a file that several share."""
