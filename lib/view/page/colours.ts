/** Palettes for colour-blind readers too: viridis and cividis for numbers, Okabe and Ito's for categories. */
import { scaleSequential } from 'd3-scale'
import { interpolateCividis, interpolateGreys, interpolateViridis } from 'd3-scale-chromatic'

export const PALETTES = ['viridis', 'cividis', 'grey'] as const
export type Palette = (typeof PALETTES)[number]

const INTERPOLATORS: Readonly<Record<Palette, (at: number) => string>> = {
  viridis: interpolateViridis,
  cividis: interpolateCividis,
  grey: interpolateGreys,
}

/** Steps of a palette: more than the eye can distinguish. */
const STEPS = 256

const tables = new Map<Palette, Uint8Array>()

/** Red, green and blue of each step. */
export function paletteBytes(palette: Palette): Uint8Array {
  const known = tables.get(palette)
  if (known) return known
  const scale = scaleSequential(INTERPOLATORS[palette]).domain([0, STEPS - 1])
  const table = new Uint8Array(3 * STEPS)
  for (let step = 0; step < STEPS; step++) table.set(rgbOf(scale(step)), 3 * step)
  tables.set(palette, table)
  return table
}

function rgbOf(colour: string): readonly number[] {
  if (!colour.startsWith('#')) return colour.match(/\d+/g)!.map(Number)
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
}

/** @param share - 0 to 1 */
export function stepOf(share: number): number {
  return Math.max(0, Math.min(STEPS - 1, Math.floor(share * STEPS)))
}

export function paletteColour(palette: Palette, share: number): string {
  const at = 3 * stepOf(share)
  const [red, green, blue] = paletteBytes(palette).subarray(at, at + 3)
  return `rgb(${red},${green},${blue})`
}

/** Relative luminance at which black and white text have the same contrast, by the formulas of WCAG 2. */
const MIDDLE = 0.179

/** Whether text on a step is black. */
export function isLight(palette: Palette, share: number): boolean {
  const at = 3 * stepOf(share)
  const [red, green, blue] = Array.from(paletteBytes(palette).subarray(at, at + 3), (byte) => {
    const part = byte / 255
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4
  })
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! > MIDDLE
}

/** Okabe and Ito, "Color Universal Design" (2008). */
export const KIND_COLOURS = ['#e69f00', '#56b4e9', '#009e73', '#f0e442', '#0072b2', '#d55e00', '#cc79a7']

/** Colours of cells with NaN and infinities; no palette contains them. */
export const MARK_COLOURS = { nan: '#d55e00', infinity: '#cc79a7', negativeInfinity: '#56b4e9' } as const
