const begin = '<!-- results: written by --save -->'
const end = '<!-- end of results -->'

/** Puts a table in the place of the one before it, and leaves the text around it. */
export function replaceTable(text: string, table: string): string {
  const [before = '', rest = ''] = text.split(begin)
  const [, after = ''] = rest.split(end)
  return `${before}${begin}\n\n${table}\n\n${end}${after}`
}

export function markdownTable(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  return [columns, columns.map(() => '---'), ...rows].map((cells) => `| ${cells.map(escaped).join(' | ')} |`).join('\n')
}

function escaped(cell: string): string {
  return cell.replaceAll('|', '\\|')
}
