mod propagate;
mod spec;
mod wire;
