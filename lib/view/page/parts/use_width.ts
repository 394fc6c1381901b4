/** The width of an element in whole pixels, for drawings; 0 before it is known. */
import { useLayoutEffect, useState } from 'preact/hooks'

export function useWidth(element: { readonly current: Element | null }): number {
  const [width, setWidth] = useState(0)
  useLayoutEffect(() => {
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry!.contentRect.width)))
    observer.observe(element.current!)
    return () => observer.disconnect()
  }, [element])
  return width
}
