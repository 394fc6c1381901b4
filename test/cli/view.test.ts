/** `tilework view` without a browser: the address, the end, and what is refused. */
import { beforeAll, expect, it } from 'vitest'
import { asTensor, save } from '../../lib/index.js'
import { runCli } from './run_cli.js'
import { temporaryFolder } from './temporary_folder.js'

const inFolder = temporaryFolder()
const FILE = inFolder('x.npy')

beforeAll(() => save(FILE, [asTensor(new Uint8Array(8), { shape: [8] })]))

it.each([[[]], [['--json']]])(
  'serves the page until it is cancelled, then ends without an error %j',
  async (flags) => {
    const controller = new AbortController()
    let answered: Promise<readonly { name: string }[]> | undefined
    let printed = ''
    const { code, stdout, stderr } = await runCli(['view', FILE, '--no-open', ...flags], {
      signal: controller.signal,
      onOutput: (text) => {
        printed += text
        const url = /http:[^"\s]+/.exec(printed)?.[0]
        if (url === undefined || !printed.endsWith('\n') || answered) return
        answered = fetch(`${url}api/files`).then((answer) => answer.json() as Promise<{ name: string }[]>)
        void answered.finally(() => controller.abort())
      },
    })
    expect({ code, stderr }).toEqual({ code: 0, stderr: flags.length === 0 ? 'Ctrl+C ends it.\n' : '' })
    expect(stdout).toMatch(
      flags.length === 0 ? /^http:\/\/127\.0\.0\.1:\d+\/[\w-]{32}\/\n$/ : /^\{"url":"http:.*"\}\n$/,
    )
    expect(await answered).toMatchObject([{ name: 'x.npy', format: 'npy' }])
  },
)

it('refuses ports that are none, and files that are none', async () => {
  for (const port of ['-1', '65536', 'x', '1.5'])
    expect(await runCli(['view', FILE, '--no-open', `--port=${port}`])).toMatchObject({ code: 64 })
  expect(await runCli(['view', inFolder('none.npy'), '--no-open'])).toMatchObject({ code: 74 })
  expect(await runCli(['view'])).toMatchObject({ code: 64 })
})
