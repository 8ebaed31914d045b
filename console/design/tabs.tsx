export interface TabsProps {
  /** For screen readers: what the pages are about. */
  readonly label: string
  readonly tabs: readonly (readonly [path: string, name: string])[]
  /** The path of this page. */
  readonly here: string
}

/** Links between the pages of one entry in the navigation. */
export function Tabs({ label, tabs, here }: TabsProps) {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(([path, name]) => (
        <a key={path} href={path} aria-current={path === here ? 'page' : undefined}>
          {name}
        </a>
      ))}
    </nav>
  )
}
