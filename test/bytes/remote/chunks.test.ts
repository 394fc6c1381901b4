/** Bodies in chunks of any length: the sender chooses it, so memory must follow the bytes and not the chunks. */
import { execFile } from 'node:child_process'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { CollectedBytes } from '../../../lib/bytes/collected_bytes.js'
import { randomNumbers } from '../../attacks/random_numbers.js'

const MIB = 1024 ** 2
const ROOT = join(import.meta.dirname, '..', '..', '..')

describe('collected bytes', () => {
  it('are those of the chunks, whatever their lengths', () => {
    const random = randomNumbers(2)
    for (const longest of [1, 3, 1000, 70_000, 9 * MIB]) {
      const collected = new CollectedBytes()
      const expected: Buffer[] = []
      for (let length = 0; length < 300_000 || expected.length < 3; length += expected.at(-1)!.byteLength) {
        const chunk = Buffer.alloc(1 + random(longest), random(256))
        collected.add(chunk)
        collected.add(new Uint8Array(0))
        expected.push(chunk)
      }
      const whole = Buffer.concat(expected)
      expect(collected.length).toBe(whole.byteLength)
      expect(Buffer.compare(collected.take(), whole)).toBe(0)
      expect(collected.take()).toHaveLength(0)
    }
  })
})

/** A server that ignores ranges and sends `total` bytes, each as a chunk of its own. */
async function singleByteServer(total: number): Promise<string> {
  const chunks = Buffer.from('1\r\nx\r\n'.repeat(20_000))
  const serve = (socket: Socket): void => {
    socket.on('error', () => undefined)
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      let sent = 0
      const more = (): void => {
        while (sent < total) {
          sent += 20_000
          if (!socket.write(chunks)) return
        }
        socket.end('0\r\n\r\n')
      }
      socket.on('drain', more)
      more()
    })
  }
  const server: Server = createServer(serve)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/x.safetensors`
}

describe('a body of 2,000,000 chunks of a byte', () => {
  const BYTES = 2_000_000

  /** Reads by the library in the folder, or by a loop of Node alone, in a process of its own. */
  async function readBy(reader: string, kind: string): Promise<{ result: unknown; grown: number }> {
    const input = kind === 'http' ? await singleByteServer(BYTES) : `stream:${BYTES}`
    const child = join(import.meta.dirname, 'chunks_child.mjs')
    const { stdout } = await promisify(execFile)(process.execPath, [child, reader, input])
    return JSON.parse(stdout) as { result: unknown; grown: number }
  }

  // Node's own streams take 47 MB in versions 20 and 22, and 180 MB in 24.
  it.each(['http', 'stream'])(
    'takes twice its bytes and 64 MiB at most, beside what Node takes: %s',
    async (kind) => {
      const alone = await readBy('node', kind)
      expect(alone.result).toBe(BYTES)
      const { result, grown } = await readBy(join(ROOT, 'dist'), kind)
      expect(result).toBe('ERR_UNKNOWN_FORMAT')
      expect(grown - alone.grown).toBeLessThan(2 * BYTES + 64 * MIB)
    },
    60_000,
  )
})
