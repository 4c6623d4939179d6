def moved(particles, params):
    dt, gravity = float(params["dt"]), float(params["gravity"])
    particles["vy"] += dt * gravity
    particles["x"] += dt * particles["vx"]
    particles["y"] += dt * particles["vy"]
    return particles
