/** Loads the data of a view. A new load aborts the previous one, which also aborts its work in the server. */
import { useEffect, useState } from 'preact/hooks'

export interface Loaded<T> {
  readonly value?: T
  readonly error?: string
  readonly isLoading: boolean
}

let loading = 0

/** Marks the page as busy for screen readers. @returns a function that removes the mark, once */
function busy(): () => void {
  const mark = (change: number): void => {
    loading += change
    document.body.setAttribute('aria-busy', String(loading > 0))
  }
  mark(1)
  let isOver = false
  return () => {
    if (!isOver) mark(-1)
    isOver = true
  }
}

/**
 * @param key - identifies what to load; undefined for nothing
 * @returns the state of the load; it keeps the last value while the next is loaded
 */
export function useLoad<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ isLoading: key !== undefined })
  useEffect(() => {
    if (key === undefined) return
    const controller = new AbortController()
    const over = busy()
    setLoaded(({ value }) => ({ ...(value !== undefined && { value }), isLoading: true }))
    const show = (next: Loaded<T>): void => {
      if (!controller.signal.aborted) setLoaded(next)
      over()
    }
    load(controller.signal).then(
      (value) => show({ value, isLoading: false }),
      (error: unknown) => show({ error: (error as Error).message, isLoading: false }),
    )
    return () => {
      controller.abort()
      over()
    }
    // `load` is a new function on each render; the key alone identifies what it loads.
  }, [key])
  return loaded
}
