/** Palettes for colour-blind readers too: blue to red around 0, viridis and cividis for numbers, Okabe and Ito's for categories. */
import { scaleSequential } from 'd3-scale'
import { interpolateCividis, interpolateGreys, interpolateRdBu, interpolateViridis } from 'd3-scale-chromatic'

/** The middle of `diverging` is 0; the others go from the lowest value to the highest. */
export const PALETTES = ['diverging', 'viridis', 'cividis', 'grey'] as const
export type Palette = (typeof PALETTES)[number]

const INTERPOLATORS: Readonly<Record<Palette, (at: number) => string>> = {
  diverging: (at) => interpolateRdBu(1 - at),
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

interface Marks {
  readonly nan: string
  readonly infinity: string
  readonly negativeInfinity: string
}

/** Colours of cells with NaN and infinities, which the palette does not contain. */
export function markColours(palette: Palette): Marks {
  // Reds and blues are numbers there.
  if (palette === 'diverging') return { nan: '#f0e442', infinity: '#009e73', negativeInfinity: '#7b3294' }
  return { nan: '#d55e00', infinity: '#cc79a7', negativeInfinity: '#56b4e9' }
}

/** Where a value stands in a palette, 0 to 1. */
export function shareOf(palette: Palette, low: number | null, high: number | null, value: number): number {
  if (low === null || high === null) return 0.5
  if (palette === 'diverging') {
    const most = Math.max(Math.abs(low), Math.abs(high))
    return most === 0 ? 0.5 : (value / most + 1) / 2
  }
  return high === low ? 0.5 : (value - low) / (high - low)
}
