/** Drawings show every element at its offset and holes as holes, and are bounded and well-formed. */
import { describe, expect, it } from 'vitest'
import { describeLayout } from '../../lib/layout/describe.js'
import { drawLayoutSvg } from '../../lib/layout/draw_svg.js'
import { drawLayoutText } from '../../lib/layout/draw_text.js'
import type { Layout } from '../../lib/layout/layout.js'
import { LAYOUT_NAMES, parseLayout } from '../../lib/layout/parse_layout.js'
import { coordinates } from './coordinates.js'

/** A small shape that satisfies the constraints of a layout. */
function smallShape(layout: Layout): number[] {
  if (layout.name === 'nv12') return [2, 3, 5, 2]
  if (layout.name === 'image_2d_rgba') return [1, 3, 5, 7]
  if (layout.kind === 'winograd' || layout.name.includes('winograd')) {
    return [16, 2, 3, layout.name.includes('6x3') ? 8 : 4]
  }
  return [...layout.axes].map((letter) => ('foi'.includes(letter) ? 5 : 2))
}

/** Fails unless every tag is closed in order and every special character is escaped. */
function expectWellFormed(svg: string): void {
  const open: string[] = []
  for (const [, end, name, , alone] of svg.matchAll(
    /<(\/?)([a-zA-Z]+)((?:\s+[\w:-]+="[^"<]*")*)\s*(\/?)>/g,
  )) {
    if (end === '/') expect(open.pop()).toBe(name)
    else if (alone !== '/') open.push(name!)
  }
  expect(open).toEqual([])
  const words = svg.replace(/<\/?[a-zA-Z]+(?:\s+[\w:-]+="[^"<]*")*\s*\/?>/g, '')
  expect(words).not.toMatch(/[<>"']|&(?!#\d+;)/)
}

describe('drawLayoutText', () => {
  it('draws the digits, the blocks in order, addresses and holes', () => {
    const text = drawLayoutText(parseLayout('b_fs_yx_fsv4'), [1, 5, 2, 2], { width: 70 })
    expect(text.split('\n').slice(0, 23)).toEqual([
      'b_fs_yx_fsv4  [1, 5, 2, 2]',
      '32 slots = 20 elements + 12 holes',
      'memory order, outermost first: b f/4 y x · f4',
      '',
      'Digits of the offset, outermost first; an arrow is a step in slots',
      '  f/4  0 ─+16→ 1      which block of 4 along the feature index f',
      '  y    0 ─+8→ 1       the height index y',
      '  x    0 ─+4→ 1       the width index x',
      '  f4   0 ─+1→ 1 … 3   the position inside that block of f, 0 to 3',
      '',
      '8 blocks of 4 slots in memory, each with the offset of its first slot',
      '  0 [f0–3 y0 x0] ─+4→ 4 [f0–3 y0 x1] ─+4→ 8 [f0–3 y1 x0] …',
      '  16 [f4 y0 x0] … 28 [f4 y1 x1]',
      '',
      '    ── f/4 = 0 ──',
      ' 0  y0   f0x0  f1x0  f2x0  f3x0   f0x1  f1x1  f2x1  f3x1',
      ' 8  y1   f0x0  f1x0  f2x0  f3x0   f0x1  f1x1  f2x1  f3x1',
      '',
      '    ── f/4 = 1 ──',
      '16  y0   f4x0  ·     ·     ·      f4x1  ·     ·     ·',
      '24  y1   f4x0  ·     ·     ·      f4x1  ·     ·     ·',
      '',
      'How to read it',
    ])
    expect(text.replaceAll('\n ', '')).toContain(
      'Example  f4 y1 x1: f/4 = 1, y = 1, x = 1, f%4 = 0, so the offset is ((1·2 + 1)·2 + 1)·4 + 0 = 28.',
    )
  })

  // Catches digits, group titles and an example that are false for the last column.
  it('says where the last column has other digits, and titles groups by digits of all columns', () => {
    const layout = parseLayout('iy_xs_os_xsv2_osv8__ao32')
    const three = drawLayoutText(layout, [33, 1, 1, 3], { width: 200 })
    const caption = 'of the offset in every column but the last, outermost first'
    expect(three).toContain(`Digits ${caption}`)
    expect(drawLayoutSvg(layout, [33, 1, 1, 3])).toContain(`digits ${caption}`)
    const titles = [...three.matchAll(/── (.*) ──/g)].map(([, title]) => title)
    expect(titles).toEqual(['x/2 = 0', 'x/2 = 1'])
    expect(drawLayoutText(layout, [33, 1, 1, 4])).toContain('Digits of the offset, outermost first')
    const one = drawLayoutText(layout, [10, 1, 1, 1], { width: 200 })
    expect(one).toMatch(/^ {2}o32 .* 31 +the position inside that block of o, 0 to 31$/m)
    expect(one).toContain('o9 x0: x%2 = 0, o%32 = 9, so the offset is 0·32 + 9 = 9.')
  })

  it('enlarges one block of a large memory, and a block with holes', () => {
    const text = drawLayoutText(parseLayout('b_fs_yx_fsv16'), [1, 40, 6, 6])
    expect(text).toContain('108 blocks of 16 slots in memory')
    const labels = (from: number, count: number): string =>
      Array.from({ length: count }, (_, at) => `f${from + at}`.padEnd(3))
        .join('  ')
        .trimEnd()
    expect(text).toContain(`── block 0 of 108: slots 0 to 15, f0–15 y0 x0 ──\n0   ${labels(0, 16)}\n`)
    expect(text).toContain(
      `── block 107 of 108: slots 1712 to 1727, f32–39 y5 x5 ──\n1712   ${labels(32, 8)}  ·    ·`,
    )
    // Overview, block, sentence.
    const places = ['Digits of the offset', 'blocks of 16', '── block 0', 'Example'].map((part) =>
      text.indexOf(part),
    )
    expect(places).toEqual(places.toSorted((one, other) => one - other))
    expect(drawLayoutText(parseLayout('bfyx'), [1, 3, 224, 224])).toContain('672 runs of 224 slots')
  })

  it.each<[string, number[], string?]>([
    ['b_fs_yx_fsv16', [1, 40, 6, 6]],
    ['os_is_yx_osv16_isv16', [32, 48, 3, 3]],
    ['bs_fs_yx_bsv16_fsv16', [32, 64, 4, 4]],
    ['bs_fs_zyx_bsv16_fsv16', [32, 640, 12, 30, 40]],
    ['os_is_yx_osv16_isv16', [512, 512, 3, 3]],
    ['b_fs_zyx_fsv16', [1, 999, 10, 10, 10]],
    ['os_iyx_osv32', [64, 20], 'int4'],
    ['b_fs_yx_fsv16', [1, 1024, 1, 1]],
    ['b_fs_yx_fsv16', [1, 1020, 1, 1]],
    ['b_fs_yx_fsv16', [1, 200_001, 7, 7]],
    ['os_is_yx_osv16_isv16', [1032, 1048, 3, 3]],
    ['bs_fs_yx_bsv16_fsv16', [12_000, 50_001, 1, 1]],
    ['os_is_yx_osv4_isv4', [1030, 1030, 1, 1]],
    ['os_iyx_osv32', [70_001, 2000], 'int4'],
  ])('a block of 16 of %s %j is one row of 100 columns', (name, shape, dtype) => {
    const text = drawLayoutText(
      parseLayout(name),
      shape,
      dtype === undefined ? {} : { dtype: dtype as 'int4' },
    )
    for (const line of text.split('\n')) expect(line.length, line).toBeLessThanOrEqual(100)
    const rows = text.split('\n').filter((line) => /^ *\d+ {2}.* [a-z]\d/.test(line) && !line.includes('['))
    expect(rows.length).toBeGreaterThan(0)
    for (const row of rows) {
      const [, relative] = row.split('+ ')
      const cells = relative?.trim().split(/ +/) ?? row.match(/(?<= )(([a-z]\d+)+|·)(?= |$)/g)!
      expect(cells.length, row).toBeGreaterThanOrEqual(16)
    }
  })

  it('counts from the first index of a block where long indices would split it', () => {
    const text = drawLayoutText(parseLayout('b_fs_yx_fsv16'), [1, 100_004, 1, 1])
    expect(text).toContain('0   f0   f1   f2 ')
    expect(text).toContain('\n100000  f100000+   0  1  2  3  ·  · ')
    const example = 'Cells count from the indices with + before them: 1 after f100000+ is f100001.'
    expect(text).toContain(`  ${example}\n`)
    const svg = drawLayoutSvg(parseLayout('b_fs_yx_fsv16'), [1, 100_004, 1, 1])
    expect(svg).toContain('>f100000+<')
    expect(svg).toContain(example)
    const twoAxes = drawLayoutSvg(parseLayout('os_is_yx_osv32_isv2'), [64, 8, 3, 3])
    expect(twoAxes).toContain('0,1 after o0 i0+ is o0 i1.')
  })

  it('says how elements of 4 and 2 bits share bytes', () => {
    for (const [dtype, count] of [
      ['int4', 2],
      ['uint2', 4],
    ] as const) {
      const sentence = `${count} slots of ${dtype} share a byte, the one with the lower offset in its lower bits.`
      const layout = parseLayout('b_fs_yx_fsv16')
      expect(drawLayoutText(layout, [1, 32, 2, 2], { dtype })).toContain(`  ${sentence}\n`)
      expect(drawLayoutSvg(layout, [1, 32, 2, 2], { dtype })).toContain(sentence)
      expect(drawLayoutText(layout, [1, 32, 2, 2], { dtype: 'int8' })).not.toContain('share a byte')
    }
  })

  it('explains holes only where there are some', () => {
    const layout = parseLayout('b_fs_yx_fsv16')
    expect(drawLayoutSvg(layout, [1, 33, 2, 2])).toContain('A hole: ')
    expect(drawLayoutSvg(layout, [1, 32, 2, 2])).not.toContain('A hole: ')
  })

  it('gives an offset of one digit without an equation', () => {
    expect(drawLayoutText(parseLayout('bfyx'), [1, 2, 1, 1])).toContain('f1: f = 1, so the offset is 1.')
  })

  it('colours only on request, and gives no neighbours of a block one colour', () => {
    const layout = parseLayout('os_is_yx_osv16_isv16')
    expect(drawLayoutText(layout, [32, 48, 3, 3])).not.toContain('\x1b')
    const coloured = drawLayoutText(layout, [32, 48, 3, 3], { color: true })
    const rows = coloured
      .split('\n')
      .map((line) => Array.from(line.matchAll(/48;5;(\d+)m/g), ([, colour]) => colour))
      .filter((row) => row.length > 0)
    expect(rows.map((row) => row.length)).toEqual(Array(16).fill(16))
    rows.forEach((row, y) => {
      row.forEach((colour, x) => {
        expect(colour).not.toBe(row[x + 1])
        expect(colour).not.toBe(rows[y + 1]?.[x])
      })
    })
  })

  it('explains the order of 4-bit elements', () => {
    const text = drawLayoutText(parseLayout('os_iyx_osv32'), [32, 2], { dtype: 'int4' })
    expect(text).toContain('memory order, outermost first: o/32 i y x · o%16 (o/16)%2')
    expect(text).toContain('64 slots = 64 elements + 0 holes; 32 bytes')
  })

  it('merges long runs of holes', () => {
    const text = drawLayoutText(parseLayout('os_is_yx_osv32_isv4'), [1, 1, 1, 1])
    expect(text).toMatch(/· \d+ holes, up to offset 127/)
  })

  it.each([60, 80, 200])('limits the rows of the catalogue to %i columns', (width) => {
    for (const name of LAYOUT_NAMES.filter((layout) => layout.length < 30)) {
      const text = drawLayoutText(parseLayout(name), smallShape(parseLayout(name)), { width })
      const rows = text.split('\n').filter((line) => /^ *\d+ {2}/.test(line))
      expect(rows.length).toBeGreaterThan(0)
      for (const row of rows) expect(row.length).toBeLessThanOrEqual(width)
    }
  })

  it('is bounded for the largest tensors and reports what it omits', () => {
    const text = drawLayoutText(parseLayout('bs_fs_zyx_bsv16_fsv16'), [2000, 3000, 4, 5, 6000])
    expect(text.split('\n').length).toBeLessThan(120)
    expect(text).toMatch(/^\d+ blocks of 256 slots/m)
    expect(drawLayoutText(parseLayout('row_major'), Array(255).fill(1)).length).toBeLessThan(3000)
  })

  it.each([[[]], [[0]], [[2, 0, 3]], [[7]], [[97, 53]]])('draws row_major [%s]', (shape) => {
    expect(drawLayoutText(parseLayout('row_major'), shape)).toContain('How to read it')
    expectWellFormed(drawLayoutSvg(parseLayout('row_major'), shape))
  })

  it('throws the errors of the layout', () => {
    const run = () => drawLayoutText(parseLayout('bfyx'), [1, 2, 3, 4, 5])
    expect(run).toThrow(expect.objectContaining({ code: 'ERR_LAYOUT_SHAPE' }))
  })
})

describe('drawLayoutSvg', () => {
  it.each(LAYOUT_NAMES)('%s is well-formed, bounded and correct', (name) => {
    const layout = parseLayout(name)
    const shape = smallShape(layout)
    const svg = drawLayoutSvg(layout, shape, { dtype: 'float16' })
    expectWellFormed(svg)
    expect(svg.length).toBeLessThan(600_000)
    const long = [...layout.axes].map((_, axis) => axis).filter((axis) => shape[axis]! > 1)
    const offsets = new Map(
      [...coordinates(shape)].map((index) => [
        long.map((axis) => `${layout.axes[axis]}${index[axis]}`).join(' '),
        layout.offsetOf(shape, index),
      ]),
    )
    const drawn = [...svg.matchAll(/<title>(.*) is at offset (\d+)<\/title>/g)]
    expect(drawn.length).toBeGreaterThan(0)
    for (const [, element, offset] of drawn) expect(offsets.get(element!)).toBe(Number(offset))
    for (const [, offset, element] of svg.matchAll(/<title>offset (\d+) holds (.*)<\/title>/g)) {
      expect([...offsets.values()]).toContain(Number(offset))
      if (offsets.has(element!)) expect(offsets.get(element!)).toBe(Number(offset))
    }
  })

  it('is bounded for the largest tensors and reports what it omits', () => {
    const svg = drawLayoutSvg(parseLayout('b_fs_yx_fsv16'), [2000, 3000, 4000, 5000])
    expectWellFormed(svg)
    expect(svg.length).toBeLessThan(600_000)
    expect(svg).toContain('One block of its memory')
    expect(svg).toContain('of 6000000 slices')
  })

  it('hatches holes, and names explicit padding', () => {
    const svg = drawLayoutSvg(parseLayout('bfyx'), [1, 1, 2, 2], { lower: [0, 0, 1, 1] })
    expect(svg.match(/class="hole"/g)!.length).toBe(6)
    expect(svg).toContain('explicit padding')
  })
})

describe('describeLayout', () => {
  it('contains name, digits, padding, notes, tag and aliases', () => {
    expect(describeLayout(parseLayout('bfyx_f16'))).toEqual([
      'b_fs_yx_fsv16 is a data layout over the axes b (batch), f (feature), y (height), x (width).',
      'Memory order, outermost first: b f/16 y x · f16.',
      'b: the batch index b.',
      'f/16: which block of 16 along the feature index f.',
      'y: the height index y.',
      'x: the width index x.',
      'f16: the position inside that block of f, 0 to 15.',
      'The size of f is rounded up to a multiple of 16; slots past its end are holes and hold zero.',
      'Explicit padding before an axis shifts its elements, after it adds slots; both happen before blocking.',
      'oneDNN tag: aBcd16b (its name there; not a name here).',
      'Other names: bfyx_f16.',
    ])
  })

  it.each([...LAYOUT_NAMES, 'row_major', 'column_major', 'b_fs_yx_fsv24'])(
    '%s is a list of sentences',
    (name) => {
      for (const sentence of describeLayout(parseLayout(name))) expect(sentence).toMatch(/^\S.*\.$/)
    },
  )

  it('notes that a reorder omits the Winograd transform', () => {
    expect(describeLayout(parseLayout('winograd_2x3_s1_weights')).join(' ')).toContain(
      'which a reorder does not do',
    )
  })
})
