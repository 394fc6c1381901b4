/**
 * The colours of the drawings, computed: neighbours of a block differ for every kind of colour vision, and text is readable.
 * Simulation of colour blindness: Machado, Oliveira and Fernandes 2009, severity 1. Difference: CIE 1976.
 */
import { describe, expect, it } from 'vitest'
import { FILLS, INKS, PAGES } from '../../lib/layout/draw_svg.js'
import { BACKGROUNDS } from '../../lib/layout/draw_text.js'

type Triple = readonly [number, number, number]

const VISIONS: Record<string, readonly [Triple, Triple, Triple]> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  tritanopia: [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
}

/** Ten times the difference that is just noticeable side by side. */
const CLEAR_DIFFERENCE = 18
/** WCAG 2, level AA, for small text. */
const READABLE = 4.5

function linear(hex: string): Triple {
  const [r, g, b] = [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4
  })
  return [r!, g!, b!]
}

function seen(hex: string, vision: string): Triple {
  const rgb = linear(hex)
  const [r, g, b] = VISIONS[vision]!.map((row) => {
    const sum = row.reduce((total, factor, at) => total + factor * rgb[at]!, 0)
    return Math.min(1, Math.max(0, sum))
  })
  return [r!, g!, b!]
}

const luminance = ([r, g, b]: Triple): number => 0.2126 * r + 0.7152 * g + 0.0722 * b

function lab([r, g, b]: Triple): Triple {
  const cube = (t: number): number => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116)
  const x = cube((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047)
  const y = cube(luminance([r, g, b]))
  const z = cube((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883)
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)]
}

function difference(one: string, other: string, vision: string): number {
  const [a, b] = [lab(seen(one, vision)), lab(seen(other, vision))]
  return Math.hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2])
}

function contrast(one: string, other: string): number {
  const [bright, dark] = [one, other].map((hex) => luminance(linear(hex))).sort((a, b) => b - a)
  return (bright! + 0.05) / (dark! + 0.05)
}

/** Colour 16 to 231 of the 256-colour palette of terminals. */
function terminalColour(code: number): string {
  const levels = [0, 95, 135, 175, 215, 255]
  const index = code - 16
  const channels = [Math.floor(index / 36), Math.floor(index / 6) % 6, index % 6].map((at) => levels[at]!)
  return `#${channels.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

const terminal = BACKGROUNDS.map((codes) => codes.map(terminalColour))

describe.each([
  ['a terminal', terminal, '#000000', ['#ffffff', '#000000']],
  ['a light page', FILLS.light, INKS.light, [PAGES.light]],
  ['a dark page', FILLS.dark, INKS.dark, [PAGES.dark]],
] as const)('on %s', (_, [light, dark], ink, pages) => {
  it.each(Object.keys(VISIONS))('any two neighbours differ clearly: %s', (vision) => {
    for (const one of light!) {
      for (const other of dark!) {
        expect(difference(one, other, vision), `${one} ${other}`).toBeGreaterThan(CLEAR_DIFFERENCE)
      }
    }
  })

  it('labels are readable, and cells stand out from the page', () => {
    for (const fill of [...light!, ...dark!]) {
      expect(contrast(fill, ink), fill).toBeGreaterThan(READABLE)
      for (const page of pages) expect(difference(fill, page, 'normal'), fill).toBeGreaterThan(10)
    }
  })
})
