Hello, world.
