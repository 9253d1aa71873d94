"""What the pages that teach are made of: lessons and their claims, recorded runs and grids of what-ifs. No torch."""
