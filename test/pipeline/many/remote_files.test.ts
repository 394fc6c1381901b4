/** Runs over many URLs: lists, patterns, names of outputs, and what a second run skips. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { convertMany, open, type RemoteOptions, save, serialize, tensor } from '../../../lib/index.js'
import { registerScheme } from '../../../lib/remote.js'
import { MemoryStore } from '../../bytes/remote/memory_store.js'
import { RangeServer } from '../../bytes/remote/range_server.js'
import { AZURE, BUCKET, GCS, S3, type StoreServer } from '../../bytes/remote/store_servers.js'
import { runCli } from '../../cli/run_cli.js'
import { temporaryFolder } from '../../cli/temporary_folder.js'

const inFolder = temporaryFolder()
const vector = (value: number) => tensor(Float32Array.of(value, 2, 3), { name: 'w' })

describe.each([S3, GCS, AZURE].map((store) => ({ ...store, start: () => store.start() })))(
  '$scheme:',
  (store) => {
    describe.skipIf(store.program === undefined)('against a server', () => {
      let server: StoreServer
      let remote: RemoteOptions
      beforeAll(async () => {
        server = await store.start()
        remote = server.remote
      }, 30_000)
      afterAll(() => server?.stop())
      const urlOf = (key: string): string => `${store.scheme}://${BUCKET}/${key}`

      it('a pattern is converted below a URL, and only changed objects a second time', async () => {
        for (const [index, key] of ['in/a.npy', 'in/deep/b c.npy', 'in/deep/note.txt'].entries()) {
          await server.put(key, await serialize(vector(index), { format: 'npy' }))
        }
        const options = {
          outDir: urlOf('out'),
          dtype: 'float16',
          format: 'safetensors',
          remote,
          open: { remote },
          manifest: inFolder(`${store.scheme}.jsonl`),
          jobs: 2,
        } as const
        const run = () => convertMany(urlOf('in/**/*.npy'), options)
        expect(await run()).toMatchObject({ files: 2, written: 2, failed: 0 })
        const file = await open(urlOf('out/deep/b%20c.safetensors'), { remote })
        expect(file.dense(0).dtype).toBe('float16')
        file.close()
        expect(await run()).toMatchObject({ skipped: 2, written: 0 })
        await server.put('in/a.npy', await serialize(vector(9), { format: 'npy' }))
        expect(await run()).toMatchObject({ skipped: 1, written: 1 })
        // An output that somebody has replaced is written again.
        await server.put('out/a.safetensors', new Uint8Array(10))
        expect(await run()).toMatchObject({ skipped: 1, written: 1 })
      })

      it('the command takes a pattern and a list, with settings of the environment', async () => {
        for (const [name, value] of Object.entries(server.env)) vi.stubEnv(name, value)
        await server.put('list/x.npy', await serialize(vector(1), { format: 'npy' }))
        await server.put('list/y.npy', Buffer.from('damaged'))
        const { code, stdout } = await runCli([
          'convert',
          urlOf('list/*.npy'),
          '--out-dir',
          inFolder(store.scheme),
          '--keep-going',
          '--json',
        ])
        const [x, y, summary] = stdout
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line))
        expect(x).toMatchObject({ input: urlOf('list/x.npy'), status: 'written' })
        expect(y).toMatchObject({ input: urlOf('list/y.npy'), status: 'failed' })
        expect(summary.summary).toMatchObject({ written: 1, failed: 1 })
        expect(code).not.toBe(0)
        vi.unstubAllEnvs()
        expect(readdirSync(inFolder(store.scheme)).sort()).toEqual(['.tilework-manifest.jsonl', 'x.npy'])
      })
    })
  },
)

describe('a store of the program', () => {
  const store = new MemoryStore()
  beforeEach(async () => {
    store.objects.clear()
    registerScheme('many', store)
    for (const name of ['a', 'b']) await save(`many://host/in/${name}.npy`, vector(1))
  })

  it('cannot be searched where it cannot list', async () => {
    const running = convertMany('many://host/in/*.npy', { outDir: inFolder('none') })
    await expect(running).rejects.toMatchObject({
      code: 'ERR_UNSUPPORTED',
      message: expect.stringMatching(/cannot be listed/),
    })
  })

  it('keeps paths below a base, and writes nothing over an input', async () => {
    const inputs = ['many://host/in/a.npy', 'many://host/in/b.npy']
    await convertMany(inputs, { outDir: 'many://host/out', base: 'many://host/' })
    expect([...store.objects.keys()]).toContain('/out/in/a.npy')
    await expect(convertMany(inputs, { outDir: 'many://host/in' })).rejects.toThrow(
      /would overwrite the input/,
    )
    await expect(convertMany(inputs, { outDir: inFolder('o'), base: 'many://other/' })).rejects.toThrow(
      /many:\/\/host\/in\/a\.npy lies outside the base folder many:\/\/other\//,
    )
  })

  it.each(['many://host/x/..%2f..%2fevil.npy', 'many://host/a%5cb.npy', 'many://host/%00.npy'])(
    '%s is refused as the name of an output',
    async (url) => {
      await expect(convertMany(url, { outDir: inFolder('out') })).rejects.toMatchObject({
        code: 'ERR_PATH_ESCAPE',
      })
    },
  )

  it('keys of a list that are no names of files are refused', async () => {
    registerScheme('hostile', {
      open: store.open,
      list: async function* (prefix) {
        const url = new URL(prefix)
        url.pathname = '/in/evil%01.npy'
        yield { url, byteLength: 1 }
      },
    })
    const running = convertMany('hostile://host/in/**', { outDir: inFolder('out') })
    await expect(running).rejects.toMatchObject({ code: 'ERR_PATH_ESCAPE' })
  })

  it('a folder is refused with a pattern', async () => {
    await expect(convertMany('many://host/in/', { outDir: inFolder('out') })).rejects.toThrow(
      /is a folder; select its objects with a pattern such as 'many:\/\/host\/in\/\*\.safetensors'/,
    )
  })
})

it('URLs with a signature are converted, and the signature is in no report and no manifest', async () => {
  const server = new RangeServer()
  await server.listen()
  try {
    const url = `${server.put('/a b.npy', await serialize(vector(1), { format: 'npy' }))}?signature=secret`
    mkdirSync(inFolder('signed'))
    const run = () =>
      runCli([
        'convert',
        url,
        server.url('/none.npy?signature=secret'),
        '--out-dir',
        inFolder('signed'),
        '--keep-going',
        '--json',
      ])
    const first = await run()
    const second = await run()
    expect(first.stdout).toContain('"written":1')
    expect(second.stdout).toContain('"skipped":1')
    const manifest = readFileSync(inFolder('signed/.tilework-manifest.jsonl'), 'utf8')
    expect(manifest).toContain('/a%20b.npy')
    for (const text of [first.stdout, first.stderr, second.stdout, manifest])
      expect(text).not.toContain('secret')
    expect(readdirSync(inFolder('signed'))).toContain('a b.npy')
  } finally {
    await server.close()
  }
})
