/** Describes a layout in sentences, for the command line, drawings and documentation. */

import { type DtypeName, resolveDtype } from '../dtype/dtypes.js'
import { defineLayout, type LayoutDefinition } from './definition.js'
import { type DigitRule, digitNames, formatOrder } from './digit_rule.js'
import { hasAnyRank, type Layout } from './layout.js'
import { checkParsedLayout } from './parse_layout.js'
import { formatConstraint, rulesFor } from './storage.js'

const AXIS_WORDS: Readonly<Record<string, string>> = {
  b: 'batch',
  f: 'feature',
  o: 'output channel',
  i: 'input channel',
  g: 'group',
  c: 'component',
  x: 'width',
  y: 'height',
  z: 'depth',
  w: '4th spatial axis',
  u: '5th spatial axis',
  v: '6th spatial axis',
}

const KIND_WORDS: Readonly<Record<Layout['kind'], string>> = {
  row_major: 'the plain layout',
  column_major: 'the plain layout with its axes reversed',
  data: 'a data layout',
  weights: 'a weights layout',
  weights_grouped: 'a grouped weights layout',
  image: 'an image layout',
  winograd: 'a Winograd-domain layout',
}

/**
 * Sentences that explain the name, each digit of the offset, the padding and the notes of a layout.
 *
 * @throws TileworkError ERR_ARGUMENT for a value that `parseLayout` did not return
 */
export function describeLayout(layout: Layout): string[] {
  const definition = defineLayout(checkParsedLayout(layout, 'describeLayout').name)
  return [
    headline(definition),
    ...(hasAnyRank(definition) ? [] : [`Memory order, outermost first: ${definition.order}.`]),
    ...describeDigits(definition.digits).map(({ digit, meaning }) => `${digit}: ${meaning}.`),
    ...paddingSentences(definition),
    ...definition.constraints.map((constraint) => `It needs ${formatConstraint(constraint)}.`),
    ...definition.notes,
    ...(definition.onednnTag === undefined
      ? []
      : [`oneDNN tag: ${definition.onednnTag} (its name there; not a name here).`]),
    ...(definition.aliases.length === 0 ? [] : [`Other names: ${definition.aliases.join(', ')}.`]),
  ]
}

/** Each digit of an offset, outermost first, with its meaning. */
export function describeDigits(digits: readonly DigitRule[]): { digit: string; meaning: string }[] {
  const names = digitNames(digits)
  return digits.map((digit, position) => ({ digit: names[position]!, meaning: describeDigit(digit, digits) }))
}

/** The memory order in short form for an element type: `layout.order` for all but a few with 4-bit types. */
export function orderFor(layout: Layout, dtype?: DtypeName): string {
  const definition = defineLayout(layout.name)
  return hasAnyRank(definition)
    ? definition.order
    : formatOrder(rulesFor(definition, dtype && resolveDtype(dtype)))
}

function headline({ name, kind, axes }: LayoutDefinition): string {
  const words = [...axes].map((letter) => `${letter} (${AXIS_WORDS[letter]})`).join(', ')
  return `${name} is ${KIND_WORDS[kind]}${words === '' ? '' : ` over the axes ${words}`}.`
}

function describeDigit(digit: DigitRule, all: readonly DigitRule[]): string {
  const [index, word] = indexWords(digit.axes)
  if (digit.radix === 'extent') {
    return digit.weight === 1 ? `the ${index}` : `which block of ${digit.weight} along the ${index}`
  }
  const among = all.filter(({ axes, radix }) => axes === digit.axes && radix !== 'extent')
  const range = `0 to ${digit.radix - 1}`
  if (among.length === 1) return `the position inside that block of ${word}, ${range}`
  const part = digit.weight === 1 ? word : `${word} / ${digit.weight}, rounded down,`
  return `${part} modulo ${digit.radix}: ${range}`
}

/** The index that a digit is computed from, and its short name. */
function indexWords(axes: string): [index: string, word: string] {
  if (axes.length === 1) return [`${AXIS_WORDS[axes]} index ${axes}`, axes]
  // y*X + x, and (i*Y + y)*X + x for three.
  const [first = '', ...others] = [...axes]
  const formula = others.reduce(
    (text, letter) => `${text.includes('+') ? `(${text})` : text}·${letter.toUpperCase()} + ${letter}`,
    first,
  )
  return [`fused index ${formula}`, axes]
}

function paddingSentences({ kind, digits, align }: LayoutDefinition): string[] {
  const slices = digits.filter(({ radix, weight }) => radix === 'extent' && weight > 1)
  const blocked = slices.map(({ axes, weight }) => {
    const subject = axes.length > 1 ? `The fused size of ${axes}` : `The size of ${axes}`
    return `${subject} is rounded up to a multiple of ${weight}; slots past its end are holes and hold zero.`
  })
  const aligned = [...align].map(
    ([letter, multiple]) =>
      `The size of ${letter} is rounded up to a multiple of ${multiple}, but it is not divided into blocks of that size.`,
  )
  if (kind !== 'data' && !hasAnyRank({ kind })) return [...blocked, ...aligned]
  const explicit =
    'Explicit padding before an axis shifts its elements, after it adds slots; both happen before blocking.'
  return [...blocked, ...aligned, explicit]
}
