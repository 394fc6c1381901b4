/** Schemas of operators by name and version: parameters, types and attributes, read from the generated table on demand. */
import { ownEntry } from '../../../own_entry.js'
import { NEWEST_VERSIONS, SCHEMAS, TYPE_SETS } from './schema_table.js'

/** An input or output of an operator. */
export interface Parameter {
  /** Parameters with the same variable have the same type; undefined for one that has a type of its own. */
  readonly variable: string | undefined
  /** Types as `typeKey` writes them. */
  readonly types: ReadonlySet<string>
  readonly option: 'single' | 'optional' | 'variadic'
  /** Whether all values of a variadic parameter have one type. */
  readonly isHomogeneous: boolean
  /** Values that a node gives at least. */
  readonly least: number
}

export interface AttributeSchema {
  readonly name: string
  /** Number of AttributeProto.AttributeType. */
  readonly type: number
  readonly isRequired: boolean
  /** Lists are separated by commas; undefined for no default. */
  readonly defaultText: string | undefined
}

/** An operator as one version defines it. */
export interface Schema {
  /** The version of the operator set that defined it. */
  readonly since: number
  readonly isDeprecated: boolean
  /** Whether onnx infers types and shapes of the outputs, and so notices what contradicts them. */
  readonly isInferred: boolean
  /** Whether nodes may have other attributes. */
  readonly isOpen: boolean
  readonly inputs: readonly Parameter[]
  readonly outputs: readonly Parameter[]
  readonly attributes: ReadonlyMap<string, AttributeSchema>
}

/** Key of the type of an element, and of what contains it: `7` is a tensor of int64, `S7` a sequence of such tensors. */
export function typeKey(code: number, container = ''): string {
  return container + code.toString(36)
}

/** The newest known version of the operator set of a domain with schemas. */
export function newestVersion(domain: string): number {
  return NEWEST_VERSIONS[domain]!
}

/** The versions of an operator, oldest first; undefined for an unknown one. */
export function schemasOf(domain: string, name: string): readonly Schema[] | undefined {
  const key = `${domain}:${name}`
  let schemas = PARSED.get(key)
  if (!schemas) {
    const line = ownEntry(ownEntry(SCHEMAS, domain) ?? {}, name)
    if (line === undefined) return undefined
    schemas = parse(line)
    PARSED.set(key, schemas)
  }
  return schemas
}

/** The schema of an operator at a version of its operator set; undefined where the set has no such operator. */
export function schemaAt(domain: string, name: string, version: number): Schema | undefined {
  return schemasOf(domain, name)?.findLast(({ since }) => since <= version)
}

/** The parameter of the input or output at an index; undefined behind the last one. */
export function parameterAt(parameters: readonly Parameter[], index: number): Parameter | undefined {
  const last = parameters.at(-1)
  return parameters[index] ?? (last?.option === 'variadic' ? last : undefined)
}

/** How many values a node gives at least: optional ones before a required one count, as their places must be there. */
export function leastCount(parameters: readonly Parameter[]): number {
  return parameters.reduce(
    (least, { least: own, option }, at) => (own > 0 || option === 'variadic' ? at + own : least),
    0,
  )
}

/** Infinity for a variadic last parameter. */
export function mostCount(parameters: readonly Parameter[]): number {
  return parameters.at(-1)?.option === 'variadic' ? Number.POSITIVE_INFINITY : parameters.length
}

/** Schemas that were asked for: at most those of the table. */
const PARSED = new Map<string, readonly Schema[]>()

/** By the number of AttributeProto.AttributeType. */
const ATTRIBUTE_LETTERS = '?fistgFISTGpPyY'

function parse(line: string): Schema[] {
  let last: readonly string[] = ['-', '-', '-']
  return line.split('|').map((row): Schema => {
    const [since = '', ...parts] = row.split(';')
    const number = Number.parseInt(since, 10)
    const marks = { isInferred: !since.includes('~'), isOpen: since.includes('?') }
    if (since.endsWith('!'))
      return { since: number, isDeprecated: true, ...marks, inputs: [], outputs: [], attributes: new Map() }
    last = ['', '', ''].map((_, at) => parts[at] || last[at]!)
    return { since: number, isDeprecated: false, ...marks, ...definition(last) }
  })
}

function definition([slots, variables, attributes]: readonly string[]): Pick<
  Schema,
  'inputs' | 'outputs' | 'attributes'
> {
  const sets = new Map(
    listOf(variables!, ',').map((text) => {
      const [name, index] = text.split('=') as [string, string]
      return [name, typeSet(Number(index))]
    }),
  )
  const [inputs, outputs] = slots!.split('>') as [string, string]
  const parameters = (text: string): Parameter[] =>
    text === '' ? [] : text.split(',').map((slot) => parameter(slot, sets))
  return {
    inputs: parameters(inputs),
    outputs: parameters(outputs),
    attributes: new Map(
      listOf(attributes!, ' ').map((text) => {
        const attribute = attributeSchema(text)
        return [attribute.name, attribute]
      }),
    ),
  }
}

const listOf = (text: string, separator: string): string[] => (text === '-' ? [] : text.split(separator))

function parameter(slot: string, sets: ReadonlyMap<string, ReadonlySet<string>>): Parameter {
  const [, text = '', mark = '', least = ''] = /^([^?*%]+)([?*%]?)(\d*)$/.exec(slot) ?? []
  const isType = text.startsWith('!')
  return {
    variable: isType ? undefined : text,
    types: isType ? keysOf(text.slice(1)) : sets.get(text)!,
    option: mark === '' ? 'single' : mark === '?' ? 'optional' : 'variadic',
    isHomogeneous: mark !== '%',
    least: mark === '' ? 1 : Number(least),
  }
}

function attributeSchema(text: string): AttributeSchema {
  const [, name = '', mark, letter = '', defaultText] = /^(\w+)([!:=])(\w)(?::(.*))?$/.exec(text) ?? []
  return { name, type: ATTRIBUTE_LETTERS.indexOf(letter), isRequired: mark === '!', defaultText }
}

const SET_TEXTS = TYPE_SETS.split(' ')
const SETS: ReadonlySet<string>[] = []

function typeSet(index: number): ReadonlySet<string> {
  SETS[index] ??= keysOf(SET_TEXTS[index]!)
  return SETS[index]
}

/** `17S1` becomes the keys `1`, `7` and `S1`; codes behind the marks of maps are pairs. */
function keysOf(text: string): ReadonlySet<string> {
  const keys = new Set<string>()
  for (const [, mark = '', codes = ''] of text.matchAll(/([A-Z]?)([0-9a-z]+)/g)) {
    const width = mark === 'M' || mark === 'Q' ? 2 : 1
    for (let at = 0; at < codes.length; at += width) keys.add(mark + codes.slice(at, at + width))
  }
  return keys
}
