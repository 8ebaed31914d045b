import type { ComponentChildren, VNode } from 'preact'
import { jsxEscape, jsxTemplate } from 'preact/jsx-runtime'

/**
 * Markup with values, for what a page repeats hundreds of times: the renderer joins the strings of
 * a template, but examines each attribute of an element. Texts and numbers are escaped. In an
 * attribute, a value needs double quotes around it.
 */
export function html(template: readonly string[], ...values: readonly ComponentChildren[]): VNode {
  return jsxTemplate(template as string[], ...values.map(escaped))
}

/** The renderer escapes what is in a list or an element. */
function escaped(value: ComponentChildren): unknown {
  return typeof value === 'object' ? value : jsxEscape(value)
}
