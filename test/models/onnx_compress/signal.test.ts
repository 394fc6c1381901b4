/** A signal ends each compression with ERR_ABORTED: before the first change, and between weights where they are read. */
import { describe, expect, it } from 'vitest'
import { quantizeDynamic, quantizeWeights, toFloat16 } from '../../../lib/onnx.js'
import { recorded } from './recorded.js'

describe.each(Object.entries({ quantizeDynamic, quantizeWeights, toFloat16 }))(
  'the signal of %s',
  (_, compress) => {
    it('that was aborted before leaves the model as it was', async () => {
      const model = await recorded('transformer')
      const signal = AbortSignal.abort('enough')
      await expect(compress(model, { signal })).rejects.toMatchObject({
        code: 'ERR_ABORTED',
        cause: 'enough',
      })
      expect(model.isChanged).toBe(false)
    })

    it('must be one', async () => {
      const model = await recorded('transformer')
      const signal = { aborted: false } as AbortSignal
      await expect(compress(model, { signal })).rejects.toMatchObject({ code: 'ERR_ARGUMENT' })
      expect(model.isChanged).toBe(false)
    })
  },
)

it.each(Object.entries({ quantizeDynamic, toFloat16 }))(
  'a signal that fires while %s reads weights ends it',
  async (_, compress) => {
    const model = await recorded('transformer')
    const controller = new AbortController()
    const running = compress(model, { signal: controller.signal })
    controller.abort('enough')
    await expect(running).rejects.toMatchObject({ code: 'ERR_ABORTED', cause: 'enough' })
  },
)
