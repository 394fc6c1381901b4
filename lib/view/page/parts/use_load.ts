/** Loads what a view shows; a newer load ends the one before, which also ends its work in the server. */
import { useEffect, useState } from 'preact/hooks'

export interface Loaded<T> {
  readonly value?: T
  readonly error?: string
  readonly isLoading: boolean
}

/**
 * @param key - what is loaded; undefined for nothing
 * @returns the last value while the next is loaded
 */
export function useLoad<T>(key: string | undefined, load: (signal: AbortSignal) => Promise<T>): Loaded<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ isLoading: key !== undefined })
  useEffect(() => {
    if (key === undefined) return
    const controller = new AbortController()
    setLoaded(({ value }) => ({ ...(value !== undefined && { value }), isLoading: true }))
    load(controller.signal).then(
      (value) => controller.signal.aborted || setLoaded({ value, isLoading: false }),
      (error: unknown) => {
        if (!controller.signal.aborted) setLoaded({ error: (error as Error).message, isLoading: false })
      },
    )
    return () => controller.abort()
    // The key says what is loaded.
  }, [key])
  return loaded
}
