"""The content of the pages that teach: lessons and their claims, recorded runs and grids of what-ifs. No torch."""
