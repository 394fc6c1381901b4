/** Resolves a name to a layout that is not bound to a shape yet: grammar plus catalogue. */
import {
  type AxisConstraint,
  type CatalogueEntry,
  catalogueEntry,
  type FourBitRule,
  LAYOUT_ALIASES,
  type LastColumnRule,
  meaningOfAlias,
  OLDER_NAMES,
  REFUSED_NAMES,
} from './catalogue.js'
import { type DigitRule, formatOrder, topDigit } from './digit_rule.js'
import { type GrammarLayout, parseGrammar } from './grammar.js'
import type { Layout } from './layout.js'
import { MAX_NAME_LENGTH, refuseName } from './refuse_name.js'
import { unknownLayoutNote } from './unknown_layout.js'

/** A layout that is not bound to a shape. */
export interface LayoutDefinition {
  readonly name: string
  readonly kind: Layout['kind']
  readonly axes: string
  readonly digits: readonly DigitRule[]
  readonly order: string
  readonly align: ReadonlyMap<string, number>
  readonly constraints: readonly AxisConstraint[]
  /** True where a shape must have all axes of the layout; otherwise a shorter shape gets trailing ones. */
  readonly isExactRank: boolean
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
    isExactRank: false,
    aliases: [],
    notes: [note],
  }
}

/** @throws TileworkError ERR_LAYOUT_NAME */
export function defineLayout(name: string): LayoutDefinition {
  if (Object.hasOwn(ANY_RANK, name)) return ANY_RANK[name]!
  if (name === '') refuseName(name, 'the name is empty')
  if (name.length > MAX_NAME_LENGTH) {
    refuseName(name, `the name has ${name.length} characters; the limit is ${MAX_NAME_LENGTH}`)
  }
  if (Object.hasOwn(REFUSED_NAMES, name)) refuseName(name, REFUSED_NAMES[name]!)
  const meaning = meaningOfAlias(name)
  if (meaning?.exactRank) return denseLayout(meaning.alias, meaning.means)
  return defineCanonical(meaning?.means ?? (Object.hasOwn(OLDER_NAMES, name) ? OLDER_NAMES[name]! : name))
}

/** An alias without a batch or spatial axis. It keeps its own name, because its canonical layout accepts more shapes. */
function denseLayout(name: string, means: string): LayoutDefinition {
  const definition = defineCanonical(means)
  const { length } = definition.axes
  const note = `Same order in memory as ${means}; a shape must have exactly ${length} axes.`
  return { ...definition, name, isExactRank: true, notes: [note] }
}

function defineCanonical(name: string): LayoutDefinition {
  const entry = catalogueEntry(name)
  const { special, fourBit } = entry
  const grammar = readNotation(name, entry)
  const tag = special === undefined ? grammar.onednnTag : undefined
  return {
    name,
    kind: special?.kind ?? grammar.kind,
    axes: grammar.axes,
    digits: grammar.digits,
    order: formatOrder(grammar.digits),
    align: grammar.align,
    constraints: special?.constraints ?? [],
    isExactRank: false,
    ...(fourBit === undefined ? {} : { fourBit }),
    ...(special?.lastColumn === undefined ? {} : { lastColumn: special.lastColumn }),
    ...(tag === undefined ? {} : { onednnTag: tag }),
    aliases: otherNames(name),
    notes: notesOf(name, entry, grammar),
  }
}

function otherNames(name: string): string[] {
  const aliases = LAYOUT_ALIASES.filter((alias) => {
    const { means, exactRank } = meaningOfAlias(alias)!
    return means === name && !exactRank
  })
  return [...aliases, ...Object.keys(OLDER_NAMES).filter((older) => OLDER_NAMES[older] === name)]
}

function readNotation(name: string, { special }: CatalogueEntry): GrammarLayout {
  if (special?.plainAxes === undefined) return parseGrammar(special?.sameAs ?? name)
  const axes = special.plainAxes
  return { kind: 'data', axes, digits: [...axes].map((letter) => topDigit(letter)), align: new Map() }
}

function notesOf(
  name: string,
  { special, fourBit, hasOnednnConstant }: CatalogueEntry,
  grammar: GrammarLayout,
): string[] {
  const notes = [...(special?.notes ?? [])]
  const unknown = unknownLayoutNote(name)
  if (unknown !== undefined) notes.push(unknown)
  if (special?.sameAs !== undefined) notes.push(`Same order in memory as ${special.sameAs}.`)
  if (fourBit !== undefined) notes.push(fourBit.note)
  if (special === undefined && grammar.onednnTag !== undefined) {
    if (hasOnednnConstant === false) {
      notes.push('oneDNN can describe it as a blocked memory descriptor but has no named constant for it.')
    }
    if (grammar.align.size > 0) notes.push('oneDNN needs padded_dims beyond the block size for it.')
  }
  return notes
}
