import ts from 'typescript'

function parse(content: string): ts.SourceFile {
  return ts.createSourceFile('source.ts', content, ts.ScriptTarget.Latest, true)
}

function forEachNode(node: ts.Node, visit: (node: ts.Node) => void): void {
  visit(node)
  ts.forEachChild(node, (child) => {
    forEachNode(child, visit)
  })
}

/** The text of every string and template, comments left out. A template's expressions count as one blank each. */
export function literalsIn(content: string): string[] {
  const found: string[] = []
  forEachNode(parse(content), (node) => {
    if (ts.isStringLiteralLike(node)) found.push(node.text)
    if (ts.isTemplateExpression(node)) {
      found.push([node.head.text, ...node.templateSpans.map((span) => span.literal.text)].join(' '))
    }
  })
  return found
}

export function identifiersIn(content: string): Set<string> {
  const found = new Set<string>()
  forEachNode(parse(content), (node) => {
    if (ts.isIdentifier(node)) found.add(node.text)
  })
  return found
}

/** What a module imports or re-exports from. */
export function specifiersIn(content: string): Set<string> {
  const found = new Set<string>()
  forEachNode(parse(content), (node) => {
    const specifier = ts.isImportDeclaration(node) || ts.isExportDeclaration(node) ? node.moduleSpecifier : undefined
    if (specifier !== undefined && ts.isStringLiteral(specifier)) found.add(specifier.text)
  })
  return found
}

/** The first line of every statement that is no re-export. */
export function statementsBesideReExports(content: string): string[] {
  return parse(content)
    .statements.filter((statement) => !(ts.isExportDeclaration(statement) && statement.moduleSpecifier !== undefined))
    .map((statement) => statement.getText().split('\n')[0] ?? '')
}

/** How many lines hold code: blank lines and lines with nothing but comment do not count. */
export function codeLinesIn(content: string): number {
  const source = parse(content)
  const lines = new Set<number>()
  forEachNode(source, (node) => {
    if (node.getChildCount(source) > 0 || node.getWidth(source) === 0) return
    const first = source.getLineAndCharacterOfPosition(node.getStart(source)).line
    const last = source.getLineAndCharacterOfPosition(node.getEnd()).line
    for (let line = first; line <= last; line++) lines.add(line)
  })
  // Brackets and keywords are no nodes for forEachChild, so their lines come from the tokens.
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, true, ts.LanguageVariant.Standard, content)
  for (let token = scanner.scan(); token !== ts.SyntaxKind.EndOfFileToken; token = scanner.scan()) {
    lines.add(source.getLineAndCharacterOfPosition(scanner.getTokenStart()).line)
  }
  return lines.size
}
