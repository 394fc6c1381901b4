/** Parses the arguments of `tilework edit`: NAME=VALUE pairs, and JSON on the command line or in a file. */
import { readFileSync, statSync } from 'node:fs'
import { type Dtype, type DtypeName, resolveDtype, TileworkError } from '../../index.js'
import { expectedText } from '../../internal.js'
import type { Dimension, OptimizePass } from '../../onnx.js'
import { dimensionList, numberList } from '../text/parse_shape.js'
import { ioError } from '../text/report_error.js'

export interface NewName {
  readonly from: string
  readonly to: string
}

export interface InputShape {
  readonly name: string
  /** Dimensions; for ONNX models also names, and null for unknown ones. */
  readonly shape: readonly Dimension[]
}

/** The type of a value; without `shape` the rank is unknown. */
export interface DeclaredType {
  readonly name: string
  readonly dtype: Dtype
  readonly shape?: readonly Dimension[]
}

/** A value for a node or a tensor of the model. */
export interface Named<Value> {
  readonly name: string
  readonly value: Value
}

export type JsonObject = Readonly<Record<string, unknown>>

/** Maximum length of a JSON file, which describes one node (CWE-770). */
const MAX_JSON_BYTES = 16 * 1024 * 1024

/** Collects the values of a flag that may be repeated. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value]

export function collectShape(text: string, before: readonly InputShape[] = []): InputShape[] {
  const [name, extents] = splitAt(text, text.lastIndexOf('='), '--set-input takes NAME=N,N,…')
  return [...before, { name, shape: dimensionList('--set-input')(extents) }]
}

/** As `collectShape`, but only with numbers. */
export function collectStaticShape(text: string, before: readonly InputShape[] = []): InputShape[] {
  const [name, extents] = splitAt(text, text.lastIndexOf('='), '--input-shape takes NAME=N,N,…')
  return [...before, { name, shape: numberList('--input-shape')(extents) }]
}

/** NAME=DTYPE, or NAME=DTYPE:N,N,… with names or `?` for symbolic or unknown dimensions. */
export function collectType(text: string, before: readonly DeclaredType[] = []): DeclaredType[] {
  const [name, type] = splitAt(text, text.lastIndexOf('='), '--set-type takes NAME=DTYPE or NAME=DTYPE:N,N,…')
  const colon = type.indexOf(':')
  const dtype = resolveDtype((colon < 0 ? type : type.slice(0, colon)) as DtypeName)
  if (colon < 0) return [...before, { name, dtype }]
  return [...before, { name, dtype, shape: dimensionList('--set-type')(type.slice(colon + 1)) }]
}

/** Names of passes; `optimize` checks them. */
export function passList(text: string): OptimizePass[] {
  return text.split(',').map((name) => name.trim()) as OptimizePass[]
}

export function collectName(text: string, before: readonly NewName[] = []): NewName[] {
  const use = '--rename takes OLD=NEW with one "="'
  if (text.indexOf('=') !== text.lastIndexOf('=')) throw wrongUse(`${use}; it is "${text}".`)
  const [from, to] = splitAt(text, text.indexOf('='), use)
  return [...before, { from, to }]
}

/** NAME=FILE, split at the last "=", because names contain "=" more often than paths. */
export function collectFile(text: string, before: readonly Named<string>[] = []): Named<string>[] {
  const [name, value] = splitAt(text, text.lastIndexOf('='), '--replace-constant takes NAME=FILE')
  return [...before, { name, value }]
}

export function collectNode(text: string, before: readonly JsonObject[] = []): JsonObject[] {
  return [...before, jsonOf(text, '--insert-node')]
}

export function collectNamedNode(
  text: string,
  before: readonly Named<JsonObject>[] = [],
): Named<JsonObject>[] {
  const at = text.search(/=[{@]/)
  const [name, json] = splitAt(text, at, '--replace-node takes NODE={…} or NODE=@FILE')
  return [...before, { name, value: jsonOf(json, '--replace-node') }]
}

/** A dtype of quantized values, or an object with `dtype` and the options of `quantizeConstant`. */
export function collectCodes(text: string, before: readonly Named<JsonObject>[] = []): Named<JsonObject>[] {
  const at = text.search(/=[{@]/)
  const use = '--quantize takes NAME=TYPE or NAME={…}'
  const [name, value] = splitAt(text, at < 0 ? text.lastIndexOf('=') : at, use)
  const codes = at < 0 ? { dtype: resolveDtype(value) } : jsonOf(value, '--quantize')
  return [...before, { name, value: codes }]
}

/** Parses the dtypes of float weights that Tengine supports, by name or alias. */
export function weightDtype(name: string): 'float32' | 'float16' {
  const dtype = resolveDtype(name)
  if (dtype === 'float32' || dtype === 'float16') return dtype
  throw wrongUse(`--cast-weights takes float32 or float16; it is "${name}".`)
}

/** KEY=VALUE, split at the first "=". */
export function collectMetadata(text: string, before: readonly Named<string>[] = []): Named<string>[] {
  const [name, value] = splitAt(text, text.indexOf('='), '--metadata takes KEY=VALUE')
  return [...before, { name, value }]
}

/** VERSION of ONNX itself, or DOMAIN=VERSION. */
export function collectOpset(text: string, before: readonly Named<number>[] = []): Named<number>[] {
  const [, domain = '', version] = /^(?:(.+)=)?(\d{1,9})$/.exec(text) ?? []
  if (version === undefined) throw wrongUse(`--opset takes VERSION or DOMAIN=VERSION; it is "${text}".`)
  return [...before, { name: domain, value: Number(version) }]
}

/** A number from 1, the name of a symbolic dimension, or `?` for an unknown one. In a list, because commander takes null for no value. */
export function parseBatch(text: string): readonly [Dimension] {
  const [batch, ...others] = dimensionList('--set-batch')(text)
  if (batch !== undefined && batch !== 0 && others.length === 0) return [batch]
  throw wrongUse(`--set-batch is "${text}"; it must be a whole number from 1, a name or "?".`)
}

function splitAt(text: string, at: number, use: string): [string, string] {
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw wrongUse(`${use}; it is "${text}".`)
}

/** @param text - a JSON object, or @ and the path of a file with one */
function jsonOf(text: string, flag: string): JsonObject {
  const json = text.startsWith('@') ? textOf(text.slice(1), flag) : text
  return objectOf(
    parsed(json, flag),
    `${flag} takes a JSON object, or @FILE with one; it is "${shortened(text)}".`,
  )
}

/**
 * @param value - a JSON value
 * @param refusal - the message for anything but an object
 * @throws TileworkError ERR_ARGUMENT
 */
export function objectOf(value: unknown, refusal: string): JsonObject {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JsonObject
  throw wrongUse(refusal)
}

/**
 * @param what - name of the object in the message
 * @throws TileworkError ERR_ARGUMENT for an unknown field, which would otherwise be ignored
 */
export function checkFields(object: JsonObject, what: string, known: readonly string[]): void {
  const unknown = Object.keys(object).find((name) => !known.includes(name))
  if (unknown === undefined) return
  throw wrongUse(`unknown field "${shortened(unknown)}" in ${what}${expectedText(unknown, known)}`)
}

function parsed(json: string, flag: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw wrongUse(`${flag}: "${shortened(json)}" is not JSON: ${(cause as Error).message}.`)
  }
}

function textOf(path: string, flag: string): string {
  try {
    // The length of devices and pipes is unknown, and they may never end.
    const stats = statSync(path)
    if (!stats.isFile()) throw wrongUse(`${flag}: ${path} is not a regular file.`)
    if (stats.size > MAX_JSON_BYTES) {
      throw wrongUse(`${flag}: ${path} has ${stats.size} bytes; the limit is ${MAX_JSON_BYTES}.`)
    }
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw cause instanceof TileworkError ? cause : ioError(path, path, cause)
  }
}

/** Maximum length of an argument in a message. */
const SHOWN_LENGTH = 60

function shortened(text: string): string {
  return text.length > SHOWN_LENGTH ? `${text.slice(0, SHOWN_LENGTH)}…` : text
}

function wrongUse(message: string): TileworkError {
  return new TileworkError('ERR_ARGUMENT', message)
}
