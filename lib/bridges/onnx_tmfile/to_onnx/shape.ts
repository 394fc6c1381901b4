/** Static shapes. */
export type Shape = readonly number[]

/** Number of elements. */
export function countOf(shape: Shape): number {
  return shape.reduce((product, extent) => product * extent, 1)
}
