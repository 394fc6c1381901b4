/** The data of a job: input, output, options. Written by the submitter, checked by the worker. */
import { createHash } from 'node:crypto'
import { resolve } from 'node:path'
import { isUrl } from '../bytes/remote/schemes.js'
import { TileworkError } from '../errors.js'
import type { ConvertOptions } from '../pipeline/convert.js'
import { isFields } from '../pipeline/many/manifest_line.js'
import type { OpenOptions } from '../pipeline/open.js'
import type { ValueQuantization } from '../pipeline/quantize_tensors.js'
import {
  count,
  either,
  type FieldRule,
  flag,
  integer,
  namedShapes,
  type ObjectRules,
  oneOf,
  readFields,
  selectors,
  shape,
  text,
} from './job_fields.js'

/** Increased when a worker of an earlier version would interpret the data differently. */
export const JOB_VERSION = 1

/** BullMQ's name of every job. */
export const JOB_NAME = 'convert'

/** Largest job in bytes of JSON; enough for ten thousand tensor names. */
export const MAX_JOB_BYTES = 256 * 1024

/** Options that are sent to workers: those that decide the bytes of the output. Machine settings and secrets are not sent. */
export type JobOptions = Pick<
  ConvertOptions,
  | 'tensors'
  | 'dtype'
  | 'layout'
  | 'lower'
  | 'upper'
  | 'fromLayout'
  | 'shape'
  | 'fromLower'
  | 'fromUpper'
  | 'as'
  | 'format'
  | 'weightsOnly'
  | 'keepIntegers'
  | 'keepOldData'
  | 'replaceGraph'
  | 'quantizeTo'
  | 'countLosses'
  | 'inputShapes'
  | 'batch'
  | 'quantized'
> & { readonly open?: Pick<OpenOptions, 'format' | 'message' | 'level'> }

/** The data of a job. */
export interface JobData {
  readonly version: typeof JOB_VERSION
  /** Absolute path, or URL. */
  readonly input: string
  /** Absolute path, or URL. */
  readonly output: string
  /** Hash of the options, as in the submitter's manifest. */
  readonly settings: string
  readonly options: JobOptions
}

/** Longest name of a dtype, a format or a protobuf message type. */
const MAX_NAME_LENGTH = 64
/** Longest name of a layout. */
const MAX_LAYOUT_LENGTH = 256

const name = text(MAX_NAME_LENGTH)
const layout = text(MAX_LAYOUT_LENGTH)

const QUANTIZATION: ObjectRules<ValueQuantization> = {
  fields: { dtype: name, axis: integer, blockSize: count, symmetric: flag },
  required: ['dtype'],
}

const OPEN: ObjectRules<NonNullable<JobOptions['open']>> = {
  fields: { format: name, message: name, level: oneOf('lenient', 'strict') },
  required: [],
}

/** An object whose fields have rules of their own. `readJob` checks the fields separately, so that an error names the field. */
const object: FieldRule = { allowed: 'an object', isAllowed: isFields }

const OPTIONS: ObjectRules<JobOptions> = {
  fields: {
    tensors: selectors,
    dtype: name,
    layout,
    lower: shape,
    upper: shape,
    fromLayout: layout,
    shape,
    fromLower: shape,
    fromUpper: shape,
    as: oneOf('weights'),
    format: name,
    weightsOnly: flag,
    keepIntegers: flag,
    keepOldData: flag,
    replaceGraph: flag,
    quantizeTo: object,
    countLosses: flag,
    inputShapes: namedShapes,
    batch: either(count, text(MAX_LAYOUT_LENGTH)),
    quantized: oneOf('keep', 'dequantize'),
    open: object,
  },
  required: [],
}

const DATA: ObjectRules<JobData> = {
  fields: {
    version: oneOf(JOB_VERSION),
    input: text(),
    output: text(),
    settings: text(MAX_NAME_LENGTH),
    options: object,
  },
  required: ['version', 'input', 'output', 'settings', 'options'],
}

/**
 * Checks the data of a job.
 *
 * @throws TileworkError ERR_ARGUMENT, ERR_LIMIT
 */
export function readJob(value: unknown): JobData {
  checkSize(value)
  const data = readFields(value, DATA, 'job')
  const options = readFields(data.options, OPTIONS, 'job.options')
  const { quantizeTo, open } = options
  return {
    ...data,
    options: {
      ...options,
      ...(quantizeTo && { quantizeTo: readFields(quantizeTo, QUANTIZATION, 'job.options.quantizeTo') }),
      ...(open && { open: readFields(open, OPEN, 'job.options.open') }),
    },
  }
}

function checkSize(value: unknown): void {
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? '')
  if (bytes <= MAX_JOB_BYTES) return
  throw new TileworkError('ERR_LIMIT', `The job has ${bytes} bytes; the limit is ${MAX_JOB_BYTES}.`)
}

/**
 * The options of a run that are sent with its jobs.
 *
 * @param options - the options of a conversion; undefined ones are ignored
 * @throws TileworkError ERR_UNSUPPORTED for an option that is not sent to workers
 */
export function jobOptions(options: object): JobOptions {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  const other = entries.find(([option]) => !Object.hasOwn(OPTIONS.fields, option))
  if (other) throw notSent(other[0])
  const { open, ...rest } = Object.fromEntries(entries) as JobOptions
  const openAs = Object.entries(open ?? {}).filter(([, value]) => value !== undefined)
  const setting = openAs.find(([option]) => !Object.hasOwn(OPEN.fields, option))
  if (setting) throw notSent(`open.${setting[0]}`)
  return openAs.length > 0 ? { ...rest, open: Object.fromEntries(openAs) } : rest
}

function notSent(option: string): TileworkError {
  const message = `The option ${option} is not sent to workers; set it on each worker.`
  return new TileworkError('ERR_UNSUPPORTED', message)
}

/** An absolute path or a URL: it names the same file on every machine that mounts the folder at the same path. */
export function sentPath(path: string): string {
  return isUrl(path) ? path : resolve(path)
}

/** The id of the job that writes `output`: two submissions with the same output are one job. */
export function jobId(output: string): string {
  return createHash('sha256').update(output).digest('base64url').slice(0, 22)
}
