/** Small parts that several views use. */
import type { ComponentChildren } from 'preact'
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
}) {
  const take = (event: { currentTarget: HTMLInputElement }): void => props.onChange(event.currentTarget.value)
  return (
    <label class="field">
      <span>{props.label}</span>
      <input
        type="text"
        size={props.width ?? 16}
        value={props.value}
        list={props.list}
        spellcheck={false}
        autocomplete="off"
        {...(props.isEager ? { onInput: take } : { onChange: take })}
      />
    </label>
  )
}

/** Facts as a list of names and values. */
export function Facts({ facts }: { facts: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value], at) => (
        <div key={at}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}
