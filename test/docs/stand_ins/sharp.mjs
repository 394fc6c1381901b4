/** As much of sharp as the pages call: a picture of 6 x 4 pixels in, and a check that the pixels out have the size that is said. */
import assert from 'node:assert/strict'

const PICTURE = {
  data: Uint8Array.from({ length: 4 * 6 * 3 }, (_, i) => i * 3),
  info: { width: 6, height: 4, channels: 3 },
}
/** Drawings that the page of recipes makes: one rectangle at the box that the session of YOLO finds. */
const RECTANGLE = '<rect x="1.5" y="1" width="3" height="2" fill="none"'

export default function sharp(input, options) {
  let drawing
  const image = {
    rotate: () => image,
    removeAlpha: () => image,
    raw: () => image,
    composite: ([layer]) => {
      drawing = layer.input.toString()
      return image
    },
    toBuffer: async ({ resolveWithObject }) => (resolveWithObject ? PICTURE : PICTURE.data),
    pipe: (stream) => stream.write(PICTURE.data),
    toFile: async () => {
      if (drawing !== undefined) {
        assert.equal(drawing.split('<rect').length, 2)
        assert.ok(drawing.includes(RECTANGLE) && drawing.includes('<svg width="6" height="4">'), drawing)
        return
      }
      const { width, height, channels } = options.raw
      assert.equal(input.length, width * height * channels)
    },
  }
  return image
}
