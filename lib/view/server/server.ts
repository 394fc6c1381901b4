/** The server behind `tilework view`: one loopback port, one token, read-only access to the named files. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { systemError } from '../../bytes/system_error.js'
import { yieldToEventLoop } from '../../event_loop.js'
import { type Answer, json, send, sendError } from './answer.js'
import { createToken, Guard } from './guard.js'
import { loadPage } from './page_files.js'
import { Parameters } from './parameters.js'
import { ROUTES } from './routes.js'
import { KnownFiles, type ViewedFile } from './viewed_files.js'

export type { ViewedFile } from './viewed_files.js'

export interface ViewServer {
  /** The address of the page, with its token. */
  readonly url: string
  close(): Promise<void>
}

/** Loopback only: on another interface everybody could read the files. */
const HOST = '127.0.0.1'
/** Most simultaneous connections; further ones are refused. */
const MAX_CONNECTIONS = 64
/** Most requests of a connection that wait for their answers. Browsers send one at a time. */
const MAX_WAITING = 200
const REQUEST_TIMEOUT_MS = 30_000
/** Short, because a browser sends its headers at once: an idle connection occupies one of the few slots without any token. */
const HEADERS_TIMEOUT_MS = 5000
/** How often the time limits are checked; Node's default of 30 s would be added to each limit. */
const CHECKING_INTERVAL_MS = 1000

/**
 * Serves files to a page on this machine until it is closed.
 *
 * @param port - 0 for any free port
 * @throws TileworkError ERR_IO for a port that is taken, or a package without its page
 */
export async function startViewServer(files: readonly ViewedFile[], port: number): Promise<ViewServer> {
  const page = await loadPage()
  const token = createToken()
  const known = new KnownFiles(files)
  const server = createServer({
    requestTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: CHECKING_INTERVAL_MS,
    maxHeaderSize: 16 * 1024,
  })
  server.maxConnections = MAX_CONNECTIONS
  await listen(server, port)
  const { port: actual } = server.address() as AddressInfo
  const guard = new Guard(actual, token)
  const connections = new Connections()
  server.on('connection', (socket) => connections.follow(socket))
  const site = { guard, page, files: known }
  server.on('request', (request, response) =>
    connections.answer(request.socket, response, (signal) => answer(request, response, site, signal)),
  )
  return { url: `http://${HOST}:${actual}/${token}/`, close: () => closeServer(server) }
}

async function listen(server: Server, port: number): Promise<void> {
  await systemError.wrapAsync(
    `port ${port}`,
    () =>
      new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen({ host: HOST, port }, () => {
          server.off('error', reject)
          resolve()
        })
      }),
  )
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

interface Site {
  readonly guard: Guard
  readonly page: ReadonlyMap<string, Answer>
  readonly files: KnownFiles
}

/** The requests of a connection that are not answered yet. */
interface Connection {
  /** Fires when the connection closes. */
  readonly signal: AbortSignal
  /** Resolves when the last request is answered. */
  last: Promise<void>
  waiting: number
}

/**
 * The requests of each connection, answered one after the other. Node passes on all pipelined requests at once; answered together
 * they would occupy the process and hold all answers in memory, and after the connection has closed as well.
 */
class Connections {
  readonly #bySocket = new WeakMap<Socket, Connection>()

  follow(socket: Socket): void {
    const controller = new AbortController()
    this.#bySocket.set(socket, { signal: controller.signal, last: Promise.resolve(), waiting: 0 })
    socket.once('close', () => controller.abort(new Error('the browser closed the connection')))
  }

  /** Answers a request after those before it. Closes a connection with too many. */
  answer(socket: Socket, response: ServerResponse, of: (signal: AbortSignal) => Promise<void>): void {
    const connection = this.#bySocket.get(socket)
    if (!connection) return
    if (connection.waiting >= MAX_WAITING) {
      socket.destroy()
      return
    }
    connection.waiting += 1
    connection.last = connection.last.then(async () => {
      await yieldToEventLoop()
      const { signal } = connection
      if (!signal.aborted) {
        await of(signal)
        await sent(response, signal)
      }
      connection.waiting -= 1
    })
  }
}

/** Resolves when the system has all of a response, or the connection has closed. */
function sent(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (response.writableFinished || signal.aborted) resolve()
    else response.once('close', resolve)
  })
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  site: Site,
  signal: AbortSignal,
): Promise<void> {
  const admitted = site.guard.admit(request)
  if ('status' in admitted) return refuse(response, admitted.status, admitted.message)
  const { path } = admitted
  const file = site.page.get(path)
  if (file) return send(response, 200, file)
  const route = Object.hasOwn(ROUTES, path) ? ROUTES[path] : undefined
  if (!route) return refuse(response, 404, 'There is nothing at this address.')
  const { url = '' } = request
  const query = url.includes('?') ? url.slice(url.indexOf('?') + 1) : ''
  const parameters = new Parameters(new URLSearchParams(query))
  try {
    send(response, 200, await route({ files: site.files, parameters, signal }))
  } catch (error) {
    sendError(response, error)
  }
}

function refuse(response: ServerResponse, status: number, message: string): void {
  const allowed = status === 405 ? { allow: 'GET' } : {}
  const { type, body } = json({ error: { code: String(status), message } })
  send(response, status, { type, body, headers: allowed })
}
