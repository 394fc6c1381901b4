/** RGB pixels for benchmarks of images: smooth shapes with noise. */
export function photo({ width, height }) {
  const pixels = new Uint8Array(width * height * 3)
  let random = 1
  for (let at = 0; at < pixels.length; at++) {
    random = (Math.imul(random, 1664525) + 1013904223) | 0
    pixels[at] = 128 + 90 * Math.sin(at / 517) + (random >>> 27)
  }
  return pixels
}
