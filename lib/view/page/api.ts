/** Requests to the server. URLs are relative, so that they include the token of the page's own URL. */
import type { ErrorAnswer, TileFacts } from '../protocol.js'

export type Query = Readonly<Record<string, string | number | readonly number[] | undefined>>

function address(path: string, query: Query): string {
  const parts = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(String(value))}`],
  )
  return `api/${path}?${parts.join('&')}`
}

async function answered(path: string, query: Query, signal?: AbortSignal): Promise<Response> {
  const response = await fetch(address(path, query), signal ? { signal } : {}).catch((error: unknown) => {
    if (signal?.aborted) throw error
    throw new Error(
      'The server does not respond; run "tilework view" again and open the address that it prints.',
    )
  })
  if (response.ok) return response
  const { error } = (await response.json()) as ErrorAnswer
  throw new Error(error.message)
}

export async function ask<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await (await answered(path, query, signal)).json()) as T
}

/** Cells of a heat map, row-major. */
export interface Tile extends TileFacts {
  readonly values: Float64Array
  readonly marks: Uint8Array
}

export async function askTile(path: string, query: Query, signal?: AbortSignal): Promise<Tile> {
  const response = await answered(path, query, signal)
  const facts = JSON.parse(response.headers.get('x-tile')!) as TileFacts
  const count = facts.cellRows * facts.cellColumns
  const body = await response.arrayBuffer()
  return { ...facts, values: new Float64Array(body, 0, count), marks: new Uint8Array(body, 8 * count) }
}
