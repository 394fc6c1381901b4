/** A name resolved to all that is known of it before a shape is given: grammar plus catalogue. */
import {
  ALIASES,
  type AxisConstraint,
  FOUR_BIT_RULES,
  type FourBitRule,
  type LastColumnRule,
  REFUSED_NAMES,
  SPECIAL_RULES,
  type SpecialRule,
  WITHOUT_ONEDNN_CONSTANT,
} from './catalogue.js'
import { type DigitRule, formatOrder, rest } from './digit_rule.js'
import { type GrammarLayout, parseGrammar } from './grammar.js'
import type { Layout } from './layout.js'
import { MAX_NAME_LENGTH, refuseName } from './refuse_name.js'

/** A layout before it meets a shape. */
export interface LayoutDefinition {
  readonly name: string
  readonly kind: Layout['kind']
  readonly axes: string
  readonly digits: readonly DigitRule[]
  readonly order: string
  readonly align: ReadonlyMap<string, number>
  readonly constraints: readonly AxisConstraint[]
  readonly fourBit?: FourBitRule
  readonly lastColumn?: LastColumnRule
  readonly onednnTag?: string
  readonly aliases: readonly string[]
  readonly notes: readonly string[]
}

/** The layouts of any rank. `row_major` is the default of every tensor; `column_major` is what numpy calls Fortran order. */
const ANY_RANK: Readonly<Record<string, LayoutDefinition>> = {
  row_major: plainLayout(
    'row_major',
    'first axis … last axis',
    'Any rank; the last axis varies fastest, as in a C array.',
  ),
  column_major: plainLayout(
    'column_major',
    'last axis … first axis',
    'Any rank; the first axis varies fastest, as in a Fortran array.',
  ),
}

function plainLayout(name: 'row_major' | 'column_major', order: string, note: string): LayoutDefinition {
  return {
    name,
    kind: name,
    axes: '',
    digits: [],
    order,
    align: new Map(),
    constraints: [],
    aliases: [],
    notes: [note],
  }
}

/** Resolves a name. Throws ERR_LAYOUT_NAME. */
export function defineLayout(name: string): LayoutDefinition {
  if (Object.hasOwn(ANY_RANK, name)) return ANY_RANK[name]!
  if (name === '') refuseName(name, 'the name is empty')
  if (name.length > MAX_NAME_LENGTH) {
    refuseName(name, `the name has ${name.length} characters; the limit is ${MAX_NAME_LENGTH}`)
  }
  if (Object.hasOwn(REFUSED_NAMES, name)) refuseName(name, REFUSED_NAMES[name]!)
  const canonical = Object.hasOwn(ALIASES, name) ? ALIASES[name]! : name
  const special = Object.hasOwn(SPECIAL_RULES, canonical) ? SPECIAL_RULES[canonical] : undefined
  const grammar = readNotation(canonical, special)
  const tag = special === undefined ? grammar.onednnTag : undefined
  const fourBit = Object.hasOwn(FOUR_BIT_RULES, canonical) ? FOUR_BIT_RULES[canonical] : undefined
  return {
    name: canonical,
    kind: special?.kind ?? grammar.kind,
    axes: grammar.axes,
    digits: grammar.digits,
    order: formatOrder(grammar.digits),
    align: grammar.align,
    constraints: special?.constraints ?? [],
    ...(fourBit === undefined ? {} : { fourBit }),
    ...(special?.lastColumn === undefined ? {} : { lastColumn: special.lastColumn }),
    ...(tag === undefined ? {} : { onednnTag: tag }),
    aliases: Object.keys(ALIASES).filter((alias) => ALIASES[alias] === canonical),
    notes: notesOf(canonical, grammar, special, fourBit),
  }
}

function readNotation(name: string, special: SpecialRule | undefined): GrammarLayout {
  if (special?.plainAxes === undefined) return parseGrammar(special?.sameAs ?? name)
  const axes = special.plainAxes
  return { kind: 'data', axes, digits: [...axes].map((letter) => rest(letter)), align: new Map() }
}

function notesOf(
  name: string,
  grammar: GrammarLayout,
  special: SpecialRule | undefined,
  fourBit: FourBitRule | undefined,
): string[] {
  const notes = [...(special?.notes ?? [])]
  if (special?.sameAs !== undefined) notes.push(`Same order in memory as ${special.sameAs}.`)
  if (fourBit !== undefined) notes.push(fourBit.note)
  if (special === undefined && grammar.onednnTag !== undefined) {
    if (WITHOUT_ONEDNN_CONSTANT.has(name)) {
      notes.push('oneDNN can describe it as a blocked memory descriptor but has no named constant for it.')
    }
    if (grammar.align.size > 0) notes.push('oneDNN needs padded_dims beyond the block size for it.')
  }
  return notes
}
