/** Small parts that several views use. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { Loaded } from './use_load.js'

/** A value once it is there, or why it is not. */
export function Awaited<T>({
  loaded,
  children,
}: {
  loaded: Loaded<T>
  children: (value: T) => ComponentChildren
}) {
  if (loaded.error !== undefined)
    return (
      <p class="error" role="alert">
        {loaded.error}
      </p>
    )
  if (loaded.value === undefined) return <p class="quiet">{loaded.isLoading ? 'Reading…' : ''}</p>
  return <>{children(loaded.value)}</>
}

export function Choice<Name extends string>(props: {
  label: string
  value: Name
  names: readonly Name[]
  onChange: (name: Name) => void
}) {
  return (
    <label class="field">
      <span>{props.label}</span>
      <select value={props.value} onChange={(event) => props.onChange(event.currentTarget.value as Name)}>
        {props.names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A text that counts once it is complete: Enter, or leaving the field. */
export function TextField(props: {
  label: string
  value: string
  onChange: (text: string) => void
  list?: string
  width?: number
  isEager?: boolean
  /** Whether the key / goes to it. */
  isSearch?: boolean
  /** Called by Enter. */
  onEnter?: () => void
}) {
  const input = useRef<HTMLInputElement>(null)
  useSlash(props.isSearch === true, input)
  const take = (event: { currentTarget: HTMLInputElement }): void => props.onChange(event.currentTarget.value)
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        ref={input}
        type="text"
        size={props.width ?? 16}
        value={props.value}
        list={props.list}
        spellcheck={false}
        autocomplete="off"
        onKeyDown={(event) => {
          if (event.key === 'Enter') props.onEnter?.()
        }}
        {...(props.isEager ? { onInput: take } : { onChange: take })}
      />
    </label>
  )
}

/** Moves the focus to a field by the key /, where it is not a letter of a text. */
function useSlash(isWanted: boolean, input: { readonly current: HTMLInputElement | null }): void {
  useEffect(() => {
    if (!isWanted) return
    const press = (event: KeyboardEvent): void => {
      const isText = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement
      if (event.key !== '/' || isText || event.ctrlKey || event.metaKey || event.altKey) return
      event.preventDefault()
      input.current?.focus()
    }
    document.addEventListener('keydown', press)
    return () => document.removeEventListener('keydown', press)
  }, [isWanted])
}

/** Longest value of a fact that is shown whole: metadata of models hold whole lists of classes. */
const LONG_FACT = 180
const BEGINNING = 100

function FactValue({ value }: { value: ComponentChildren }) {
  if (typeof value !== 'string' || value.length <= LONG_FACT) return <>{value}</>
  return (
    <details>
      <summary>{value.slice(0, BEGINNING)}…</summary>
      {value}
    </details>
  )
}

/** Facts as a list of names and values. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value], at) => (
        <div key={at}>
          <dt>{name}</dt>
          <dd>
            <FactValue value={value} />
          </dd>
        </div>
      ))}
    </dl>
  )
}
