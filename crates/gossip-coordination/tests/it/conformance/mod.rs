mod memory;
