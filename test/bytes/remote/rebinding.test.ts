/**
 * A name server that answers differently each time (DNS rebinding): the addresses that are checked are those that are connected
 * to. Loopback stands in for a public address, so that no packet leaves the machine.
 */
import dns, { type LookupAddress } from 'node:dns'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { openRemote } from '../../../lib/bytes/remote/schemes.js'
import { RangeServer } from './range_server.js'

vi.mock('../../../lib/bytes/remote/private_address.js', () => ({
  isPublicAddress: (address: string) => address === '127.0.0.1',
}))

type Found = (error: null, addresses: LookupAddress[]) => void

const PUBLIC = { address: '127.0.0.1', family: 4 }
const PRIVATE = { address: '10.0.0.1', family: 4 }
const server = new RangeServer()
const target = new RangeServer()
const asked: string[] = []
/** Answers of the name server, in order; the last one again and again. */
let answers: LookupAddress[][] = []

beforeAll(async () => {
  await Promise.all([server.listen(), target.listen()])
})
beforeEach(() => {
  target.put('/b', new Uint8Array(1_000_000))
  server.fault = (_, response) => {
    response.writeHead(302, { location: `http://rebinding.test:${target.port}/b` }).end()
    return true
  }
  vi.spyOn(dns, 'lookup').mockImplementation(((name: string, _: unknown, found: Found) => {
    asked.push(name)
    found(null, answers[Math.min(asked.length, answers.length) - 1]!)
  }) as typeof dns.lookup)
})
afterEach(() => {
  vi.restoreAllMocks()
  asked.length = 0
  target.requests.length = 0
  target.fault = () => false
})
afterAll(async () => {
  await Promise.all([server.close(), target.close()])
})

const openTarget = () =>
  openRemote(new URL(server.url('/a')), { redirects: 'public', retries: 1, timeout: 2000 })

it('the address that was checked is connected to, and the name is not asked for again', async () => {
  answers = [[PUBLIC], [PRIVATE]]
  const source = await openTarget()
  expect(source.byteLength).toBe(1_000_000)
  expect(asked).toEqual(['rebinding.test'])
  source.close!()
})

it('a further connection checks its own answer', async () => {
  answers = [[PUBLIC], [PRIVATE]]
  const source = await openTarget()
  target.fault = (request) => {
    request.socket.destroy()
    return true
  }
  await expect(source.read(500_000, 500_010)).rejects.toThrow(/leads to 10\.0\.0\.1, which is not a public/)
  expect(asked).toHaveLength(2)
  expect(target.requests).toHaveLength(2)
  source.close!()
})

it('one private address among public ones is refused', async () => {
  answers = [[PUBLIC, PRIVATE]]
  await expect(openTarget()).rejects.toThrow(/leads to 10\.0\.0\.1, which is not a public/)
  expect(target.requests).toHaveLength(0)
})
