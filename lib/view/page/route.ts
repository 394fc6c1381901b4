/** The address of a view is in the URL's hash, which is never sent to a server: `#/tensor?file=0&tensor=12`. */
import { useEffect, useState } from 'preact/hooks'

export interface Route {
  /** Empty where the address names none. */
  readonly view: string
  readonly query: URLSearchParams
}

function currentRoute(): Route {
  const [, view = '', query = ''] = /^#\/?([^?]*)\??(.*)$/.exec(location.hash) ?? []
  return { view, query: new URLSearchParams(query) }
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute)
  useEffect(() => {
    const update = (): void => setRoute(currentRoute())
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [])
  return route
}

export function hrefOf(
  view: string,
  query: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const parts = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parts.set(name, String(value))
  const text = parts.toString()
  return `#/${view}${text === '' ? '' : `?${text}`}`
}

/** Changes the URL without a history entry, for choices within a view. */
export function replaceRoute(
  view: string,
  query: Readonly<Record<string, string | number | undefined>>,
): void {
  history.replaceState(null, '', hrefOf(view, query))
}

/** A whole number from the URL. */
export function numberOf(query: URLSearchParams, name: string, fallback = 0): number {
  const number = Number(query.get(name) ?? fallback)
  return Number.isSafeInteger(number) && number >= 0 ? number : fallback
}
