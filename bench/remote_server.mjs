/**
 * Serves a folder by ranges on loopback in a process of its own, and counts requests and bytes of bodies. The query of a URL
 * says for whom a request counts; `GET /counts` has the sums as JSON. Arguments: the folder, and milliseconds before each answer.
 */
import { createReadStream, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { basename, join } from 'node:path'

const [folder, delay] = process.argv.slice(2)
const counts = {}

const server = createServer((request, response) => {
  const { pathname, search } = new URL(request.url, 'http://localhost')
  if (pathname === '/counts') return response.end(JSON.stringify(counts))
  counts[search] ??= { requests: 0, bytes: 0 }
  counts[search].requests++
  setTimeout(() => answer(request, response, join(folder, basename(pathname)), counts[search]), Number(delay))
})
server.listen(0, '127.0.0.1', () => process.send(server.address().port))
process.on('disconnect', () => process.exit())

function answer({ method, headers }, response, path, count) {
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? {}
  if (size === undefined) return response.writeHead(404).end()
  const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
  const start = Number(first ?? 0)
  const end = last ? Math.min(Number(last) + 1, size) : size
  response.writeHead(first === undefined ? 200 : 206, {
    etag: '"1"',
    'accept-ranges': 'bytes',
    'content-length': end - start,
    ...(first !== undefined && { 'content-range': `bytes ${start}-${end - 1}/${size}` }),
  })
  if (method === 'HEAD') return response.end()
  createReadStream(path, { start, end: end - 1 })
    .on('data', ({ length }) => {
      count.bytes += length
    })
    .pipe(response)
}
