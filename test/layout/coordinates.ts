/** Every coordinate of a shape, in row-major order. */
export function* coordinates(shape: readonly number[]): Generator<number[]> {
  if (shape.includes(0)) return
  const index = shape.map(() => 0)
  for (;;) {
    yield [...index]
    let axis = shape.length - 1
    while (axis >= 0 && ++index[axis]! === shape[axis]) index[axis--] = 0
    if (axis < 0) return
  }
}
