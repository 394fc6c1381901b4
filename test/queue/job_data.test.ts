/** Job data are hostile input: what a job may say, and where it may read and write. The table is in docs/queue.md. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { RetryableError } from '../../lib/bytes/remote/url_scheme.js'
import { ERROR_CODES, TileworkError } from '../../lib/errors.js'
import { jobId, jobOptions, MAX_JOB_BYTES, readJob } from '../../lib/queue/job_data.js'
import { jobPolicy } from '../../lib/queue/job_policy.js'
import { failedPair, readFailure, shortResult, writtenPair } from '../../lib/queue/job_result.js'
import { Scope } from '../../lib/queue/scope.js'
import { isTransient } from '../../lib/queue/transient.js'
import { checkWorkerOptions } from '../../lib/queue/worker_options.js'
import { temporaryFolder } from '../cli/temporary_folder.js'

const inFolder = temporaryFolder()

const GOOD = {
  version: 1,
  input: '/models/a.npy',
  output: '/out/a.npy',
  settings: 'abc',
  options: {
    layout: 'byxf',
    tensors: ['w', 0],
    quantizeTo: { dtype: 'int8', axis: -1 },
    open: { format: 'npy' },
  },
}
const withOptions = (options: object) => ({ ...GOOD, options })

describe('job data', () => {
  it('that are right come through unchanged', () => {
    expect(readJob(JSON.parse(JSON.stringify(GOOD)))).toEqual(GOOD)
  })

  it.each([
    ['no object', null],
    ['a list', [GOOD]],
    ['a text', 'convert'],
    ['no field', {}],
    ['a later version', { ...GOOD, version: 2 }],
    ['a version as text', { ...GOOD, version: '1' }],
    ['an unknown field', { ...GOOD, command: 'rm' }],
    ['a path as a number', { ...GOOD, input: 1 }],
    ['a path as an object', { ...GOOD, input: { path: '/etc/passwd' } }],
    ['an empty path', { ...GOOD, output: '' }],
    ['NUL in a path', { ...GOOD, output: '/out/a\0.npy' }],
    ['a path of 5,000 characters', { ...GOOD, input: `/${'a'.repeat(5000)}` }],
    ['a list of options', withOptions([])],
    ['an unknown option', withOptions({ onFile: 'x' })],
    ['settings of the S3 client', withOptions({ remote: { s3: { endpoint: 'http://evil' } } })],
    ['headers for reading', withOptions({ open: { remote: { headers: {} } } })],
    ['following links', withOptions({ open: { symlinks: 'follow' } })],
    ['hard links', withOptions({ open: { hardLinks: 'allow' } })],
    ['limits of reading', withOptions({ open: { limits: { inputBytes: 1e15 } } })],
    ['external data elsewhere', withOptions({ external: { location: '../../x' } })],
    ['shards', withOptions({ maxShardBytes: 1 })],
    ['a device', withOptions({ device: 'opencl' })],
    [
      'a prototype',
      JSON.parse(
        '{"version":1,"input":"/a","output":"/b","settings":"s","options":{"__proto__":{"layout":"x"}}}',
      ),
    ],
    [
      'a prototype of the job',
      JSON.parse('{"__proto__":{"version":1},"input":"/a","output":"/b","settings":"s","options":{}}'),
    ],
    ['a constructor', withOptions({ constructor: { prototype: {} } })],
    ['a layout of 300 characters', withOptions({ layout: 'a'.repeat(300) })],
    ['extents as text', withOptions({ shape: ['1'] })],
    ['a negative extent', withOptions({ lower: [-1] })],
    ['an extent that is no whole number', withOptions({ lower: [0.5] })],
    ['a hundred extents', withOptions({ shape: new Array(100).fill(1) })],
    ['20,000 tensors', withOptions({ tensors: new Array(20_000).fill(0) })],
    ['nested options', withOptions({ quantizeTo: { dtype: { toString: 1 } } })],
    ['an unknown field of quantizeTo', withOptions({ quantizeTo: { dtype: 'int8', scale: [1] } })],
    ['shapes that are no lists', withOptions({ inputShapes: { x: 'y' } })],
    ['a flag as a number', withOptions({ weightsOnly: 1 })],
  ])('are refused: %s', (_, data) => {
    expect(() => readJob(data)).toThrow(
      expect.objectContaining({ name: 'TileworkError', code: 'ERR_ARGUMENT' }),
    )
  })

  it('of more bytes than any run sends are ERR_LIMIT', () => {
    const data = withOptions({ tensors: ['x'.repeat(4000), ...new Array(9000).fill('y'.repeat(40))] })
    expect(JSON.stringify(data).length).toBeGreaterThan(MAX_JOB_BYTES)
    expect(() => readJob(data)).toThrow(expect.objectContaining({ code: 'ERR_LIMIT' }))
  })

  it('name nothing of Object.prototype', () => {
    const data = readJob(JSON.parse(JSON.stringify(withOptions({ inputShapes: { x: [1] } }))))
    expect(Object.keys(data.options)).toEqual(['inputShapes'])
    expect(({} as { layout?: string }).layout).toBeUndefined()
  })

  it('have one id for each target', () => {
    expect(jobId('/a')).toBe(jobId('/a'))
    expect(jobId('/a')).not.toBe(jobId('/b'))
    // BullMQ takes numbers for its own ids, and ":" for a part of its keys.
    expect(jobId('/a')).toMatch(/^[\w-]{22}$/)
  })

  it('carry no option that belongs to a machine', () => {
    expect(
      jobOptions({ layout: 'byxf', dtype: undefined, open: { format: 'npy', message: undefined } }),
    ).toEqual({
      layout: 'byxf',
      open: { format: 'npy' },
    })
    for (const options of [{ device: 'opencl' }, { remote: {} }, { open: { mode: 'read' } }]) {
      expect(() => jobOptions(options)).toThrow(expect.objectContaining({ code: 'ERR_UNSUPPORTED' }))
    }
  })
})

describe('the scope of a worker', () => {
  const root = inFolder('root')
  mkdirSync(join(root, 'sub'), { recursive: true })
  mkdirSync(inFolder('outside'))
  writeFileSync(inFolder('outside/secret.npy'), 'secret')
  writeFileSync(join(root, 'a.npy'), 'a')
  symlinkSync(inFolder('outside'), join(root, 'link'))
  symlinkSync(inFolder('outside/secret.npy'), join(root, 'file-link.npy'))
  symlinkSync(inFolder('outside/new.npy'), join(root, 'dangling.npy'))
  symlinkSync(join(root, 'sub'), join(root, 'inner'))
  const scope = new Scope({ roots: [root, 's3://bucket/in/', 'http://127.0.0.1:9/data'], schemes: ['https'] })

  it.each([
    ['a file of the root', join(root, 'a.npy'), join(root, 'a.npy')],
    ['a link inside the root', join(root, 'inner/b.npy'), join(root, 'sub/b.npy')],
    ['a folder that is not there yet', join(root, 'new/deep/c.npy'), join(root, 'new/deep/c.npy')],
    ['an object below a root', 's3://bucket/in/a/b.npy', 's3://bucket/in/a/b.npy'],
    ['an object of an allowed scheme', 'https://host/x.npy?sig=1', 'https://host/x.npy?sig=1'],
  ])('holds %s', (_, name, expected) => {
    expect([scope.input(name), scope.output(name)]).toEqual([expected, expected])
  })

  it.each([
    ['a path elsewhere', '/etc/passwd'],
    ['a relative path', 'a.npy'],
    ['.. out of the root', `${root}/../outside/secret.npy`],
    ['.. through a folder that is not there', `${root}/none/../../outside/secret.npy`],
    ['a folder with the name of the root as its start', `${root}-other/a.npy`],
    ['the root', root],
    ['a link to a folder outside', join(root, 'link/secret.npy')],
    ['a link to a file outside', join(root, 'file-link.npy')],
    ['a file: URL', `file://${root}/a.npy`],
    ['a scheme that is not allowed', 'gopher://host/x'],
    ['a bucket beside the root', 's3://bucket2/in/a.npy'],
    ['a key beside the root', 's3://bucket/inner/a.npy'],
    ['the root of objects', 's3://bucket/in/'],
    ['.. in a key', 's3://bucket/in/../secret'],
    ['an encoded .. in a key', 's3://bucket/in/%2e%2e%2fsecret'],
    ['an encoded slash', 's3://bucket/in/..%2fsecret'],
    ['an encoded backslash', 'https://host/a%5C..%5Cb'],
    ['an empty folder in a key', 's3://bucket/in//a.npy'],
    ['a user and password', 'https://user:password@host/x.npy'],
    ['another port of the root', 'http://127.0.0.1:10/data/a.npy'],
    ['a root with another scheme', 'ftp://127.0.0.1:9/data/a.npy'],
  ])('refuses %s', (_, name) => {
    for (const check of [() => scope.input(name), () => scope.output(name)]) {
      expect(check).toThrow(expect.objectContaining({ name: 'TileworkError' }))
      expect(check).not.toThrow(/user:/)
    }
  })

  it('refuses to write through a link without a target', () => {
    expect(() => scope.output(join(root, 'dangling.npy'))).toThrow(
      expect.objectContaining({ code: 'ERR_PATH_ESCAPE' }),
    )
  })

  it('knows whose hosts are of the worker', () => {
    expect(scope.isForeignHost('https://host/x')).toBe(true)
    expect(scope.isForeignHost('http://127.0.0.1:9/data/x')).toBe(false)
    expect(scope.isForeignHost(join(root, 'a.npy'))).toBe(false)
  })

  it.each([
    ['nothing', { roots: [], schemes: [] }],
    ['a root that is a file', { roots: [join(root, 'a.npy')], schemes: [] }],
    ['a root that is not there', { roots: [join(root, 'none')], schemes: [] }],
    ['every file', { roots: [], schemes: ['file'] }],
    ['an unknown scheme', { roots: [], schemes: ['gopher'] }],
    ['a root with a password', { roots: ['https://user:x@host/'], schemes: [] }],
  ])('cannot be %s', (_, options) => {
    expect(() => new Scope(options)).toThrow(expect.objectContaining({ name: 'TileworkError' }))
  })
})

describe('what a job says of itself', () => {
  it('decides attempts and priority within bounds, and nothing else', () => {
    const hostile = {
      attempts: 1e9,
      priority: -5,
      backoff: { type: 'evil' },
      removeOnFail: true,
      repeatJobKey: 'x',
    }
    expect(jobPolicy(hostile)).toEqual(jobPolicy({}))
    expect(jobPolicy({ attempts: 2, priority: 7 })).toMatchObject({ attempts: 2, priority: 7 })
  })
})

describe('results', () => {
  const pair = { input: 'in/a.npy', output: 'out/a.npy', byteLength: 1 }
  const result = {
    format: 'npy',
    byteLength: 3,
    tensors: [],
    findings: [],
    undo: [],
    droppedNodes: 0,
    losses: [],
  }
  const undo = [{ output: 'a.back.npy', options: { layout: 'byxf' } }]

  it.each([
    ['no object', 'x'],
    ['no result', {}],
    ['an unknown format', { result: { ...result, format: 'exe' } }],
    ['a length that is no number', { result: { ...result, byteLength: '3' } }],
    ['findings that are no list', { result: { ...result, findings: {} } }],
    ['findings without a code', { result: { ...result, findings: [{ message: 'x' }] } }],
    [
      'undo options that nobody knows',
      { result: { ...result, undo: [{ output: 'x', options: { exec: 1 } }] } },
    ],
  ])('that no worker has written are refused: %s', (_, value) => {
    expect(writtenPair(value, pair, '/in/a.npy')).toBeUndefined()
  })

  it('decide no path', () => {
    const note = {
      input: { path: '/evil', bytes: 1, inode: '1', sha256: 'x' },
      output: { path: '../../evil', format: 'npy', bytes: 3, mtime: '1', inode: '1' },
      settings: 's',
    }
    const hostile = { result: { ...result, undo: [{ ...undo[0]!, output: '/etc/cron.d/evil' }] }, note }
    const finished = writtenPair(hostile, pair, '/in/a.npy')!
    expect(finished.outcome).toMatchObject({ result: { undo: [{ output: join('out', 'evil') }] } })
    expect(finished.note).toMatchObject({ input: { path: '/in/a.npy' }, output: { path: 'out/a.npy' } })
  })

  it('that are long leave the tensors out', () => {
    const tensors = Array.from({ length: 5000 }, (_, at) => ({ name: `tensor ${at}`, dtype: 'int8' }))
    const finished = { outcome: { status: 'written', result: { ...result, tensors } } } as never
    expect(shortResult('s', finished)).toMatchObject({
      settings: 's',
      result: { tensors: [], byteLength: 3 },
    })
  })

  it('that are failures have a known code, whatever was written', () => {
    const codes = ['{"code":"ERR_IO","message":"m","stage":"open"}', '{"code":"toString"}', 'boom', '[]'].map(
      (text) => readFailure(text).code,
    )
    expect(codes).toEqual(['ERR_IO', 'ERR_INTERNAL', 'ERR_INTERNAL', 'ERR_INTERNAL'])
    expect(readFailure('job stalled more than allowable limit').code).toBe('ERR_WORKER_LOST')
    const { outcome } = failedPair(
      readFailure('{"code":"ERR_HEADER","message":"m","stage":"open","path":"a","offset":3}'),
    )
    expect(outcome).toMatchObject({ stage: 'open', error: { code: 'ERR_HEADER', path: 'a', offset: 3 } })
  })
})

describe('another attempt', () => {
  const errno = (code: string) => Object.assign(new Error(code), { code })
  it.each([
    ['a disk that is full', new TileworkError('ERR_IO', 'm', { cause: errno('ENOSPC') }), true],
    ['a network share that is gone', new TileworkError('ERR_IO', 'm', { cause: errno('ESTALE') }), true],
    ['a server that failed', new TileworkError('ERR_IO', 'm', { cause: new RetryableError('503') }), true],
    ['a file that changed', new TileworkError('ERR_FILE_CHANGED', 'm'), true],
    ['no file', new TileworkError('ERR_IO', 'm', { cause: errno('ENOENT') }), false],
    ['no right', new TileworkError('ERR_IO', 'm', { cause: errno('EACCES') }), false],
    ['no object', new TileworkError('ERR_IO', 'm', { cause: { $metadata: { httpStatusCode: 404 } } }), false],
    ['a damaged file', new TileworkError('ERR_TRUNCATED', 'm'), false],
    ['anything else', new Error('m'), false],
  ])('after %s: %s', (_, error, expected) => {
    expect(isTransient(error)).toBe(expected)
  })

  it('is worth it for no code of formats', () => {
    const codes = Object.keys(ERROR_CODES).filter((code) =>
      isTransient(new TileworkError(code as 'ERR_IO', 'm')),
    )
    expect(codes).toEqual(['ERR_FILE_CHANGED', 'ERR_IO'])
  })
})

describe('options of a worker', () => {
  const queue = { url: 'redis://127.0.0.1:1' }

  it.each<[string, object, string]>([
    ['no root and no scheme', {}, 'ERR_ARGUMENT'],
    ['an unknown one', { roots: ['.'], root: '.' }, 'ERR_ARGUMENT'],
    ['an unknown one for reading', { roots: ['.'], open: { external: true } }, 'ERR_ARGUMENT'],
    ['an unknown one for URLs', { roots: ['.'], remote: { retry: 1 } }, 'ERR_ARGUMENT'],
    ['a lock of less than a second', { roots: ['.'], lockMs: 999 }, 'ERR_ARGUMENT'],
    ['a root that is not there', { roots: ['/nowhere'] }, 'ERR_IO'],
    ['no signal', { roots: ['.'], signal: {} }, 'ERR_ARGUMENT'],
    ['a signal that has fired', { roots: ['.'], signal: AbortSignal.abort() }, 'ERR_ABORTED'],
  ])('%s', (_, more, code) => {
    expect(() => checkWorkerOptions({ queue, ...more })).toThrow(expect.objectContaining({ code }))
  })
})
