// The shape of a mark: how far a pixel is outside of it, in parts of its radius. The same shapes as those of the texture.
in vec2 place;
in vec4 ink;
in vec2 mark;
out vec4 seen;

float outside(vec2 at, float measure) {
    if (measure < 0.5) {
        return max(abs(at.x), abs(at.y)) - 0.78;
    }
    if (measure < 1.5) {
        return length(at) - 0.88;
    }
    if (measure < 2.5) {
        return max(at.y - 0.75, (1.7 * abs(at.x) - 0.95 - at.y) / 1.9723);
    }
    return (abs(at.x) + abs(at.y) - 1.0) / 1.4142;
}

void main() {
    // Colours are multiplied by their opacity already.
    seen = ink * clamp(0.5 - outside(place, mark.x) * mark.y, 0.0, 1.0);
}
