/** As much of sharp as README.md calls: a picture of 6 x 4 pixels in, and a check that the pixels out have the size that is said. */
import assert from 'node:assert/strict'

const PICTURE = {
  data: Uint8Array.from({ length: 4 * 6 * 3 }, (_, i) => i * 3),
  info: { width: 6, height: 4, channels: 3 },
}

export default function sharp(input, options) {
  const image = {
    removeAlpha: () => image,
    raw: () => image,
    toBuffer: async ({ resolveWithObject }) => (resolveWithObject ? PICTURE : PICTURE.data),
    toFile: async () => {
      const { width, height, channels } = options.raw
      assert.equal(input.length, width * height * channels)
    },
  }
  return image
}
