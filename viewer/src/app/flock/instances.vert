// A square around each mark, a pixel wider than its shape, so that its border can fade.
in vec2 at;
in vec4 color;
in vec2 kind;
// Of what is drawn into: left, top, width and height, in pixels.
uniform vec4 view;
// Pixels of a point; pixels of the radius for each part of the size.
uniform vec2 sizes;
out vec2 place;
out vec4 ink;
out vec2 mark;

void main() {
    float radius = sizes.y * kind.y;
    vec2 corner = vec2(gl_VertexID & 1, gl_VertexID >> 1) * 2.0 - 1.0;
    vec2 aside = corner * (radius + 1.0);
    vec2 pixel = at * sizes.x + aside - view.xy;
    place = aside / radius;
    ink = color;
    mark = vec2(kind.x, radius);
    gl_Position = vec4(pixel.x / view.z * 2.0 - 1.0, 1.0 - pixel.y / view.w * 2.0, 0.0, 1.0);
}
