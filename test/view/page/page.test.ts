/** The page in Chromium: what is seen is compared with the numbers of the files. */

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { check, diff, type OpenFile, open, serialize, stats } from '../../../lib/index.js'
import { parseLayout, planReorder } from '../../../lib/layout.js'
import { CHROMIUM, keepScreenshot, START_MS, settled, ViewedPage } from './browser.js'
import {
  BLOCKED,
  MATRIX,
  manyTensors,
  modelFile,
  sparseFile,
  tensorsFile,
  textsFile,
} from './sample_files.js'

if (CHROMIUM === undefined) console.log('view: skipped, no chromium is installed (apt-get install chromium)')

/** Positions of the files in the page. */
const [TENSORS, MODEL, OTHER, SPARSE, TEXTS, MANY] = [0, 1, 2, 3, 4, 5] as const
const COUNT = 100_000

describe.skipIf(CHROMIUM === undefined)('the page', { timeout: 180_000 }, () => {
  let viewed: ViewedPage
  let files: readonly OpenFile[]

  beforeAll(async () => {
    const [model, other] = [await modelFile(), await modelFile(1.01)]
    const parts = [
      await tensorsFile(),
      model,
      other,
      await sparseFile(),
      await textsFile(),
      await manyTensors(COUNT),
    ]
    files = await Promise.all(parts.map((bytes) => open(bytes)))
    const names = [
      'tensors.safetensors',
      'model.onnx',
      'other.onnx',
      'sparse.btf',
      'texts.onnx',
      'many.safetensors',
    ]
    const broken = {
      severity: 'warning',
      code: 'ERR_GRAPH',
      path: 'graph.node[1].input',
      offset: 0,
      message: 'made up',
    } as const
    viewed = await ViewedPage.start(
      parts.map((bytes, at) => ({
        name: names[at]!,
        bytes,
        check: async () => (at === OTHER ? [broken] : check(bytes, { level: 'strict' })),
      })),
    )
  }, START_MS)
  afterEach(async () => {
    await viewed?.closeTabs()
  })

  afterAll(async () => {
    await viewed?.close()
    for (const file of files) file.close()
  })

  const indexOf = (file: number, name: string): number =>
    [...files[file]!.tensors].findIndex((each) => each.name === name)
  const tensorHash = (file: number, name: string): string =>
    `#/tensor?file=${file}&tensor=${indexOf(file, name)}`

  /** The facts of the page by name. */
  async function factsOf(page: Page): Promise<Record<string, string>> {
    const rows = await page
      .locator('.facts > div')
      .evaluateAll((each) =>
        each.map(
          (row) => [row.querySelector('dt')!.textContent!, row.querySelector('dd')!.textContent!] as const,
        ),
      )
    return Object.fromEntries(rows)
  }

  describe('overview', () => {
    it('sums up the file and lists its tensors', async () => {
      const page = await viewed.show(`#/overview?file=${TENSORS}`)
      const facts = await factsOf(page)
      const tensors = [...files[TENSORS]!.tensors]
      expect(facts).toMatchObject({ format: 'safetensors', tensors: String(tensors.length) })
      const floats = tensors.filter(({ dtype }) => dtype === 'float32')
      const size = floats.reduce((sum, each) => sum + each.size, 0)
      expect(facts.float32).toContain(size.toLocaleString('en'))
      const names = await page.locator('.body .row a').allTextContents()
      expect(names).toEqual(tensors.map(({ name }) => name))
      await keepScreenshot(page, 'overview')
    })

    it('sorts, searches, and opens parts of the treemap', async () => {
      const page = await viewed.show(`#/overview?file=${TENSORS}`)
      await page.getByRole('button', { name: 'bytes' }).click()
      const sorted = [...files[TENSORS]!.tensors]
        .toSorted((a, b) => bytes(b) - bytes(a))
        .map(({ name }) => name)
      expect(await page.locator('.body .row a').allTextContents()).toEqual(sorted)
      await page.getByRole('button', { name: 'layers: ' }).click()
      expect(await page.locator('.body .row a').allTextContents()).toHaveLength(3)
      await page.getByLabel('Search names').fill('*.bias')
      expect(await page.locator('.body .row a').allTextContents()).toEqual(['layers.0.bias'])
      await page.getByRole('link', { name: 'layers.0.bias', exact: true }).last().click()
      await settled(page)
      expect(await page.locator('h2.name').textContent()).toBe('layers.0.bias')
    })

    it('begins with the tensors, and draws sizes where there are several', async () => {
      const page = await viewed.show(`#/overview?file=${TENSORS}`)
      expect(await page.locator('main h2').allTextContents()).toEqual(['Tensors', 'Sizes'])
      const few = await viewed.show(`#/overview?file=${SPARSE}`)
      expect(await few.locator('main h2').allTextContents()).toEqual(['Tensors'])
    })

    it('scrolls through a hundred thousand tensors with few elements in the document', async () => {
      const page = await viewed.show(`#/overview?file=${MANY}`)
      await page.getByText(`${COUNT.toLocaleString('en')} tensors`, { exact: true }).waitFor()
      await page.locator('.rows').evaluate((rows) => rows.scrollTo(0, rows.scrollHeight))
      const last = files[MANY]!.tensors.at(-1)!.name
      await page.getByRole('link', { name: last, exact: true }).waitFor()
      expect(await page.locator('.body .row').count()).toBeLessThan(80)
      expect(await page.locator('[role=table]').getAttribute('aria-rowcount')).toBe(String(COUNT + 1))
      await page.getByLabel('Search names').fill('layer.77777.')
      await page.getByText(`1 of ${COUNT.toLocaleString('en')} tensors`).waitFor()
    })
  })

  describe('tensor', () => {
    it('shows statistics and a histogram', async () => {
      const page = await viewed.show(tensorHash(TENSORS, 'layers.0.weight'))
      const found = await stats(files[TENSORS]!.dense('layers.0.weight'))
      const facts = await factsOf(page)
      expect(Number(facts.minimum)).toBeCloseTo(Number(found.min), 4)
      expect(Number(facts.maximum)).toBeCloseTo(Number(found.max), 4)
      expect(facts).toMatchObject({ NaN: '1', infinities: '1', shape: '48 × 40' })
      const bars = page.locator('.histogram .bar')
      const counts = await bars.evaluateAll((each) =>
        each.map((bar) => Number(bar.getAttribute('data-count'))),
      )
      expect(counts).toEqual(found.histogram!.counts)
      const heights = (): Promise<number[]> =>
        bars.evaluateAll((each) => each.map((bar) => Number(bar.getAttribute('height'))))
      const [most, least] = [Math.max(...counts), Math.min(...counts.filter((count) => count > 0))]
      const linear = await heights()
      expect(linear[counts.indexOf(least)]! / linear[counts.indexOf(most)]!).toBeCloseTo(least / most, 2)
      await page.getByLabel('Counts').selectOption('logarithmic')
      const logarithmic = await heights()
      expect(logarithmic[counts.indexOf(least)]!).toBeGreaterThan(linear[counts.indexOf(least)]!)
      await keepScreenshot(page, 'tensor')
    })

    it('leads to the tensors before, behind and beside it', async () => {
      const page = await viewed.show(`#/tensor?file=${TENSORS}&tensor=1`)
      const names = [...files[TENSORS]!.tensors].map(({ name }) => name)
      const heading = () => page.locator('h2.name').textContent()
      expect(await page.locator('.names .body a').allTextContents()).toEqual(names)
      expect(await page.locator('.names [aria-current]').textContent()).toBe(names[1])
      await page.getByRole('link', { name: `${names[2]} →` }).click()
      await settled(page)
      expect(await heading()).toBe(names[2])
      await page.getByRole('link', { name: `← ${names[1]}` }).click()
      await settled(page)
      expect(await heading()).toBe(names[1])
      await page.keyboard.press('/')
      await page.keyboard.type('halves')
      expect(await page.locator('.names .body a').allTextContents()).toEqual(['halves'])
      await page.locator('.names .body a').click()
      await settled(page)
      expect(await heading()).toBe('halves')
      const first = await viewed.show(`#/tensor?file=${TENSORS}&tensor=0`)
      expect(await first.locator('.neighbours a').allTextContents()).toEqual([`${names[1]} →`])
    })

    it('colours values of both signs around 0, and of one sign from low to high', async () => {
      const page = await viewed.show(tensorHash(TENSORS, 'layers.1.weight'))
      expect(await page.getByLabel('Colours').inputValue()).toBe('diverging')
      const dense = files[TENSORS]!.dense('layers.1.weight')
      const plane = Array.from({ length: 24 * 32 }, (_, at) =>
        Number(dense.at(0, Math.floor(at / 32), at % 32)),
      )
      const most = plane.reduce((one, other) => (Math.abs(other) > Math.abs(one) ? other : one))
      const pixel = await page.locator('canvas').evaluate(
        (canvas, [row, column]) => {
          const { width, height } = canvas as HTMLCanvasElement
          const [x, y] = [((column! + 0.5) * width) / 32, ((row! + 0.5) * height) / 24].map(Math.floor)
          return [
            ...(canvas as HTMLCanvasElement).getContext('2d')!.getImageData(x!, y!, 1, 1).data.subarray(0, 3),
          ]
        },
        [Math.floor(plane.indexOf(most) / 32), plane.indexOf(most) % 32],
      )
      // The ends of ColorBrewer's RdBu: blue below 0, red above.
      expect(pixel).toEqual(most < 0 ? [5, 48, 97] : [103, 0, 31])
      const codes = await viewed.show(tensorHash(MODEL, 'q_scale'))
      expect(await codes.getByLabel('Colours').inputValue()).toBe('viridis')
    })

    it('shows values, bits and offsets in a table', async () => {
      const page = await viewed.show(tensorHash(TENSORS, 'blocked'))
      const cell = page.locator('.values tbody tr').nth(3).locator('td').nth(2)
      const [b, f, y, x] = [0, 3, 0, 2]
      const value = BLOCKED[((b * 19 + f) * 3 + y) * 4 + x]!
      expect(Number(await cell.textContent())).toBeCloseTo(value, 5)
      await page.getByLabel('Table shows').selectOption('bits')
      const bits = new DataView(Float32Array.of(value).buffer).getUint32(0, true)
      expect(await cell.textContent()).toBe(bits.toString(16).padStart(8, '0'))
      await page.getByLabel('Table shows').selectOption('offsets')
      const offset = parseLayout('b_fs_yx_fsv16').offsetOf([2, 19, 3, 4], [b, f, y, x])
      expect(await cell.textContent()).toBe(String(offset))
    })

    it('colours the heat map by the values, and marks NaN and infinity', async () => {
      const page = await viewed.show(tensorHash(TENSORS, 'layers.0.weight'))
      const colourAt = (row: number, column: number): Promise<number[]> =>
        page.locator('canvas').evaluate(
          (canvas, [r, c]) => {
            const { width, height } = canvas as HTMLCanvasElement
            const x = Math.floor(((c! + 0.5) * width) / 40)
            const y = Math.floor(((r! + 0.5) * height) / 48)
            const pixel = (canvas as HTMLCanvasElement).getContext('2d')!.getImageData(x, y, 1, 1)
            return [...pixel.data.subarray(0, 3)]
          },
          [row, column],
        )
      await page.getByLabel('Colours').selectOption('viridis')
      const finite = MATRIX.filter(Number.isFinite)
      const [low, high] = [Math.min(...finite), Math.max(...finite)]
      expect(Number(await page.getByTestId('low').textContent())).toBeCloseTo(low, 4)
      expect(Number(await page.getByTestId('high').textContent())).toBeCloseTo(high, 4)
      // The ends of viridis, and the colours of the marks.
      const placeOf = (value: number): [number, number] => {
        const at = MATRIX.indexOf(value)
        return [Math.floor(at / 40), at % 40]
      }
      expect(await colourAt(...placeOf(low))).toEqual([68, 1, 84])
      expect(await colourAt(...placeOf(high))).toEqual([253, 231, 37])
      expect(await colourAt(1, 1)).toEqual([213, 94, 0])
      expect(await colourAt(2, 2)).toEqual([204, 121, 167])
    })

    it('zooms by keys and buttons, and says what is under the pointer', async () => {
      const page = await viewed.show(tensorHash(TENSORS, 'layers.0.weight'))
      const canvas = page.locator('canvas')
      await canvas.scrollIntoViewIfNeeded()
      const pointAt = async (row: number, column: number, rows: number, columns: number): Promise<string> => {
        const box = (await canvas.boundingBox())!
        await page.mouse.move(
          box.x + ((column + 0.5) * box.width) / columns,
          box.y + ((row + 0.5) * box.height) / rows,
        )
        await settled(page)
        return (await page.getByTestId('tooltip').textContent())!
      }
      const text = await pointAt(5, 7, 48, 40)
      const value = MATRIX[5 * 40 + 7]!
      expect(text).toContain('[5, 7]')
      expect(text).toContain(String(Number(value.toPrecision(6))))
      const bits = new DataView(Float32Array.of(value).buffer).getUint32(0, true)
      expect(text).toContain(`bits 0x${bits.toString(16).padStart(8, '0')}`)
      expect(text).toContain(`offset ${5 * 40 + 7}, byte ${4 * (5 * 40 + 7)}`)
      expect(await pointAt(1, 1, 48, 40)).toContain('NaN')
      await page.getByRole('button', { name: 'Zoom in' }).click()
      await settled(page)
      await canvas.focus()
      await page.keyboard.press('ArrowUp')
      await settled(page)
      expect(await canvas.getAttribute('aria-label')).toContain('rows 6 to 29, columns 10 to 29')
      expect(await pointAt(0, 0, 24, 20)).toContain('[6, 10]')
      await page.keyboard.press('0')
      await settled(page)
      expect(await canvas.getAttribute('aria-label')).toContain('rows 0 to 47, columns 0 to 39')
    })

    it('moves through the other axes and turns the plane', async () => {
      const page = await viewed.show(tensorHash(TENSORS, 'layers.1.weight'))
      const first = page.locator('.values tbody td').nth(11)
      const dense = files[TENSORS]!.dense('layers.1.weight')
      expect(Number(await first.textContent())).toBeCloseTo(Number(dense.at(0, 1, 1)), 5)
      await page.getByLabel('axis 0 (3)', { exact: true }).fill('2')
      await page.keyboard.press('Enter')
      await settled(page)
      expect(Number(await first.textContent())).toBeCloseTo(Number(dense.at(2, 1, 1)), 5)
      await page.getByLabel(/^Rows/).selectOption('2')
      await settled(page)
      const second = page.locator('.values tbody tr').nth(3).locator('td').nth(5)
      expect(Number(await second.textContent())).toBeCloseTo(Number(dense.at(2, 5, 3)), 5)
    })

    it('shows quantized values as codes or as real values', async () => {
      const page = await viewed.show(tensorHash(MODEL, 'q'))
      const cell = page.locator('.values tbody td').nth(5)
      expect(await cell.textContent()).toBe(String(5 * 4 - 128))
      await page.getByLabel('Quantized values as').selectOption('real')
      await settled(page)
      expect(Number(await cell.textContent())).toBe((5 * 4 - 128 - 3) * 0.5)
    })

    it('draws sparse tensors as spy plots, and lists strings', async () => {
      const page = await viewed.show(`#/tensor?file=${SPARSE}&tensor=0`)
      expect(await page.locator('canvas').getAttribute('aria-label')).toContain('Spy plot of rows 0 to 29')
      const alphas = await page.locator('canvas').evaluate((canvas) => {
        const { width, height } = canvas as HTMLCanvasElement
        const context = (canvas as HTMLCanvasElement).getContext('2d')!
        const at = (r: number, c: number) =>
          context.getImageData(
            Math.floor(((c + 0.5) * width) / 30),
            Math.floor(((r + 0.5) * height) / 30),
            1,
            1,
          ).data[3]!
        return [at(4, 4), at(9, 9), at(4, 5), at(20, 3)]
      })
      expect(alphas).toEqual([255, 255, 0, 0])
      await keepScreenshot(page, 'sparse')
      const texts = await viewed.show(`#/tensor?file=${TEXTS}&tensor=0`)
      expect(await texts.locator('.values tbody td').allTextContents()).toEqual(['a', 'ü', '<b>'])
    })
  })

  describe('layout', () => {
    const SHAPE = [2, 19, 3, 4]
    const HASH = `#/layout?name=b_fs_yx_fsv16&shape=${SHAPE}&dtype=float32`

    it('shows every slot of the memory, holes included', async () => {
      const page = await viewed.show(HASH)
      const layout = parseLayout('b_fs_yx_fsv16')
      const { elements, byteLength } = layout.storage(SHAPE, { dtype: 'float32' })
      const facts = await factsOf(page)
      expect(facts.slots).toBe(String(elements))
      expect(facts.bytes).toContain(byteLength.toLocaleString('en'))
      const cells = await page
        .locator('.sides > div:nth-child(2) .grid > g')
        .evaluateAll((each) => each.map((cell) => cell.textContent))
      const expected = Array.from(
        { length: elements },
        (_, slot) => layout.coordinateOf(SHAPE, slot)?.join() ?? '',
      )
      expect(cells).toEqual(expected)
      expect(await page.locator('.grid .hole').count()).toBe(elements - 2 * 19 * 3 * 4)
      await keepScreenshot(page, 'layout')
    })

    it('links an element with its slot, both ways', async () => {
      const page = await viewed.show(HASH)
      const [logical, memory] = [
        page.locator('.sides > div:nth-child(1) .grid'),
        page.locator('.sides > div:nth-child(2) .grid'),
      ]
      // Rows are f, columns x.
      const box = (await logical.boundingBox())!
      await page.mouse.move(box.x + (2.5 * box.width) / 4, box.y + (17.5 * box.height) / 19)
      const offset = parseLayout('b_fs_yx_fsv16').offsetOf(SHAPE, [0, 17, 0, 2])
      await expectMark(memory, offset)
      expect(await page.getByTestId('link').textContent()).toBe(
        `b0 f17 y0 x2 is at offset ${offset}, byte ${4 * offset} (float32)`,
      )
      await page.getByRole('group', { name: /^Memory/ }).focus()
      await page.keyboard.press('ArrowRight')
      await expectMark(logical, offset + 1)
      await page.keyboard.press('ArrowLeft')
      await expectMark(logical, offset)
    })

    it('keeps the mark when the page moves under the pointer', async () => {
      const page = await viewed.show(HASH)
      const logical = page.locator('.sides > div:nth-child(1) .grid')
      const box = (await logical.boundingBox())!
      await page.mouse.move(box.x + 5, box.y + 5)
      await expectMark(logical, 0)
      await page.evaluate(() => window.scrollBy(0, 400))
      // Browsers tell the page of the element under a resting pointer some frames later.
      await page.waitForTimeout(500)
      await expectMark(logical, 0)
    })

    it('compares two layouts and explains the reorder', async () => {
      const page = await viewed.show(
        '#/layout?name=oiyx&other=os_is_yx_isv16_osv16&shape=20,18,2,2&dtype=int8',
      )
      expect(await page.locator('section.layout').count()).toBe(2)
      const plan = planReorder({
        dtype: 'int8',
        shape: [20, 18, 2, 2],
        from: 'oiyx',
        to: 'os_is_yx_isv16_osv16',
      })
      expect(await page.locator('pre').textContent()).toBe(plan.explain().text)
      await page.getByLabel('Shape').fill('[4, 4]')
      await page.keyboard.press('Enter')
      await settled(page)
      expect((await factsOf(page)).slots).toBe('256')
      await page.getByLabel('Layout', { exact: true }).fill('no such layout')
      await page.keyboard.press('Enter')
      await page.getByRole('alert').first().waitFor()
      viewed.faults.length = 0
    })

    it('draws explicit padding as holes', async () => {
      const page = await viewed.show(
        '#/layout?name=bfyx&shape=1,2,2,3&dtype=uint8&lower=0,0,1,1&upper=0,0,0,1',
      )
      const { elements } = parseLayout('bfyx').storage([1, 2, 2, 3], {
        lower: [0, 0, 1, 1],
        upper: [0, 0, 0, 1],
      })
      expect(await page.locator('.grid .hole').count()).toBe(elements - 12)
    })
  })

  describe('graph', () => {
    it('draws nodes, ends and edges with shapes', async () => {
      const page = await viewed.show(`#/graph?file=${MODEL}`)
      await page.locator('.box').first().waitFor()
      const boxes = await page.locator('.box .title').allTextContents()
      expect(boxes.toSorted()).toEqual(['Conv', 'Mul', 'Relu', 'Sigmoid', 'x', 'y'])
      expect(await page.locator('.edge').count()).toBe(6)
      const shapes = await page.locator('.edge text').allTextContents()
      expect(shapes.toSorted()).toEqual(['1×3×8×8', ...Array(4).fill('1×8×8×8')].toSorted())
      await keepScreenshot(page, 'graph')
    })

    it('writes weights, attributes and names into the boxes, and the model beside them', async () => {
      const page = await viewed.show(`#/graph?file=${MODEL}`)
      const conv = page.getByRole('button', { name: 'Conv conv' })
      const lines = page.locator(`[data-lines="${await conv.getAttribute('data-box')}"] text`)
      expect(await lines.allTextContents()).toEqual(['8×3×3×3, pad 1', 'conv'])
      expect(await conv.getAttribute('class')).toContain('layer')
      expect(await page.locator('.edge path[marker-end]').count()).toBe(6)
      expect(await factsOf(page)).toMatchObject({ input: 'x: float32 [1, 3, 8, 8]', Conv: '1', Relu: '1' })
    })

    it('finds nodes by / and Enter, one after the other', async () => {
      const page = await viewed.show(`#/graph?file=${MODEL}`)
      await page.locator('.box').first().waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('o')
      const chosen: (string | null)[] = []
      for (let at = 0; at < 3; at++) {
        await page.keyboard.press('Enter')
        await settled(page)
        chosen.push(await page.locator('.chosen h2').textContent())
      }
      expect(chosen.map((text) => text?.split(' ')[0])).toEqual(['Conv', 'Sigmoid', 'Conv'])
      expect(await page.getByText('1 of 2 found').count()).toBe(1)
    })

    it('shows a node with its attributes, and leads to its tensors', async () => {
      const page = await viewed.show(`#/graph?file=${MODEL}`)
      await page.getByRole('button', { name: 'Conv conv' }).focus()
      await page.keyboard.press('Enter')
      await settled(page)
      expect(await factsOf(page)).toMatchObject({ pads: '[1, 1, 1, 1]', strides: '[1, 1]' })
      await page.getByRole('link', { name: 'conv.weight' }).click()
      await settled(page)
      expect(await page.locator('h2.name').textContent()).toBe('conv.weight')
    })

    it('names the chosen node in the address, and shows it when that is opened', async () => {
      const page = await viewed.show(`#/graph?file=${MODEL}`)
      await page.getByRole('button', { name: 'Relu relu' }).click()
      await settled(page)
      const again = await viewed.show(new URL(page.url()).hash)
      expect(await again.locator('.chosen h2').textContent()).toBe('Relu relu')
      const none = await viewed.show(`#/graph?file=${MODEL}&node=12345`)
      expect(await none.locator('.chosen').textContent()).toContain('Choose a box')
    })

    it('marks findings on their nodes', async () => {
      const page = await viewed.show(`#/graph?file=${OTHER}`)
      await page.getByRole('button', { name: 'Relu relu, 1 findings' }).waitFor()
      await page.getByRole('button', { name: 'graph.node[1].input' }).click()
      expect(await page.locator('.chosen h2').textContent()).toBe('Relu relu')
      expect(await page.locator('.chosen .warning').textContent()).toContain('made up')
    })
  })

  describe('difference', () => {
    it('says the same as diff, and draws the error', async () => {
      const page = await viewed.show('#/difference')
      await page.getByLabel('Reference').selectOption(String(MODEL))
      await page.getByLabel('Compared').selectOption(String(OTHER))
      await settled(page)
      const found = await diff(files[MODEL]!, files[OTHER]!)
      const facts = await factsOf(page)
      expect(facts).toMatchObject({
        result: 'different',
        changed: '1',
        'same tensors': '3, 3 of them bit for bit',
      })
      const values = found.changed[0]!.values!
      const cells = await page.locator('tbody td').allTextContents()
      expect(Number(cells[1])).toBeCloseTo(values.maxError!, 5)
      expect(Number(cells[3])).toBeCloseTo(values.sqnr!, 3)
      expect(cells[6]).toBe(String(values.beyond))
      await page.getByRole('button', { name: 'conv.weight' }).click()
      await settled(page)
      const worst = values.worst!.index
      expect((await factsOf(page)).worst).toContain(`[${worst.join(', ')}]`)
      for (const axis of [2, 3]) {
        await page.getByLabel(`axis ${axis} (3)`, { exact: true }).fill(String(worst[axis]))
        await page.keyboard.press('Enter')
      }
      await settled(page)
      expect(Number(await page.getByTestId('high').textContent())).toBeCloseTo(values.maxError!, 5)
      await keepScreenshot(page, 'difference')
    })
  })

  describe('for everybody', () => {
    const VIEWS: readonly (readonly [string, string])[] = [
      ['overview', `#/overview?file=${MODEL}`],
      ['tensor', `#/tensor?file=${TENSORS}&tensor=0`],
      ['layout', '#/layout?name=b_fs_yx_fsv16&shape=2,19,3,4'],
      ['graph', `#/graph?file=${OTHER}`],
      ['difference', '#/difference'],
    ]
    const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

    it.each(
      VIEWS.flatMap(([view, hash]) =>
        (['light', 'dark'] as const).map((scheme) => [view, scheme, hash] as const),
      ),
    )('axe-core finds nothing serious in %s, %s', async (view, scheme, hash) => {
      const page = await viewed.show(hash, { scheme })
      await keepScreenshot(page, `${view}-${scheme}`)
      // Evaluated by the debugger, which no policy of the page concerns.
      await page.evaluate(axe)
      const violations = await page.evaluate(async () => {
        const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: AxeFinding[] }> } }
        interface AxeFinding {
          readonly id: string
          readonly impact: string
          readonly nodes: readonly { readonly html: string }[]
        }
        const { violations: found } = await axe.run()
        return found.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes[0]!.html.slice(0, 200)}`)
      })
      expect(violations.filter((each) => /^(serious|critical)/.test(each))).toEqual([])
    })

    it.each(VIEWS)('%s fits a screen of 390 pixels', async (view, hash) => {
      const page = await viewed.show(hash, { width: 390 })
      await keepScreenshot(page, `${view}-390`)
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390)
    })

    it('reaches views, fields and tensors by keys', async () => {
      const page = await viewed.show(`#/overview?file=${TENSORS}`)
      const reached = new Set<string>()
      for (let press = 0; press < 40; press++) {
        await page.keyboard.press('Tab')
        reached.add(
          await page.evaluate(
            () => document.activeElement?.textContent?.trim() || document.activeElement!.tagName,
          ),
        )
      }
      for (const name of ['Skip to content', 'Layout', 'bytes ↑', 'INPUT', 'blocked'])
        expect([...reached].some((each) => each.startsWith(name.replace(' ↑', '')))).toBe(true)
    })
  })

  it('has asked for nothing outside and printed no error', () => {
    expect(viewed.faults).toEqual([])
  })
})

describe.skipIf(CHROMIUM === undefined)('two versions of a model', { timeout: 180_000 }, () => {
  it('begins with their difference: nodes in a table, marked in both drawings', async () => {
    const changed = await open(await modelFile())
    const { graph } = changed.onnx!
    const relu = [...graph.nodes].find(({ name }) => name === 'relu')!
    relu.opType = 'LeakyRelu'
    relu.setAttribute('alpha', { type: 'FLOAT', value: 0.25 })
    const viewed = await ViewedPage.start([
      { name: 'before.onnx', bytes: await modelFile() },
      { name: 'after.onnx', bytes: await serialize(changed) },
    ])
    try {
      const page = await viewed.show('')
      expect(await page.locator('h1').textContent()).toBe('Difference')
      const row = page.locator('table.nodes tbody tr')
      expect(await row.locator('th, td').allTextContents()).toEqual([
        'relu',
        'Relu → LeakyRelu',
        'alpha 0.25',
      ])
      await page.locator('.both .box').nth(8).waitFor()
      const marked = page.locator('.both .box[data-mark=changed] .title')
      expect(await marked.allTextContents()).toEqual(['Relu', 'LeakyRelu'])
      await row.getByRole('button', { name: 'relu' }).click()
      const pressed = page.locator('.both .box[aria-pressed=true] .title')
      expect(await pressed.allTextContents()).toEqual(['Relu', 'LeakyRelu'])
      await keepScreenshot(page, 'two-versions')
      expect(viewed.faults).toEqual([])
    } finally {
      await viewed.close()
      changed.close()
    }
  })
})

/** What moves a mark arrives at the page later than the command that sends it. */
async function expectMark(grid: Locator, slot: number): Promise<void> {
  const marked = () => grid.locator('.mark').evaluateAll((marks) => marks.map((mark) => mark.dataset.slot))
  await expect.poll(marked, { timeout: 10_000 }).toEqual([String(slot)])
}

function bytes(tensor: { readonly kind: string } & object): number {
  const { storage } = tensor as { storage?: { byteLength: number } }
  return storage?.byteLength ?? 0
}
