// Lists each call of a TypeScript tree with the target that the compiler finds: oracle_typescript.mjs ROOT OUT.jsonl
// [CONDITION]
import { createRequire } from "node:module";
import fs from "node:fs";
import path from "node:path";

const ts = createRequire(path.join(process.cwd(), "package.json"))("typescript");
const root = fs.realpathSync(process.argv[2]);
const files = [];
(function walk(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const at = path.join(folder, entry.name);
    if (entry.isDirectory()) entry.name === "node_modules" || walk(at);
    else if (/\.[mc]?tsx?$/.test(entry.name) && !/\.d\.[mc]?ts$/.test(entry.name)) files.push(at);
  }
})(root);
const config = {};
const from = [path.join(root, "tsconfig.json")].find((file) => fs.existsSync(file));
if (from) Object.assign(config, ts.parseJsonConfigFileContent(ts.readConfigFile(from, ts.sys.readFile).config, ts.sys, root).options);
const options = {
  ...config, target: 99, module: 199, moduleResolution: config.paths ? 100 : 99, strict: true, skipLibCheck: true, noEmit: true,
  jsx: 1, allowImportingTsExtensions: true, types: [], customConditions: process.argv[4] ? [process.argv[4]] : undefined,
};
if (config.paths) options.module = 99;
const program = ts.createProgram(files, options);
const checker = program.getTypeChecker();
const out = [];
const place = (declaration) => {
  const file = declaration.getSourceFile();
  const { line } = file.getLineAndCharacterOfPosition((declaration.name ?? declaration).getStart(file));
  return [path.relative(root, file.fileName), line + 1, ts.SyntaxKind[declaration.kind]];
};
for (const name of files) {
  const file = program.getSourceFile(name);
  if (!file) continue;
  (function visit(node) {
    if (ts.isCallExpression(node) || ts.isNewExpression(node)) {
      let called = node.expression;
      while (ts.isParenthesizedExpression(called) || ts.isNonNullExpression(called)) called = called.expression;
      const at = ts.isIdentifier(called) ? called : ts.isPropertyAccessExpression(called) ? called.name : null;
      if (at) {
        let symbol = checker.getSymbolAtLocation(at);
        if (symbol && symbol.flags & ts.SymbolFlags.Alias) symbol = checker.getAliasedSymbol(symbol);
        const start = file.getLineAndCharacterOfPosition(at.getStart(file));
        const begin = file.getPositionOfLineAndCharacter(start.line, 0);
        const column = Buffer.byteLength(file.text.slice(begin, at.getStart(file)));
        out.push(JSON.stringify([path.relative(root, name), start.line + 1, column, at.text, (symbol?.declarations ?? []).map(place)]));
      }
    }
    ts.forEachChild(node, visit);
  })(file);
}
fs.writeFileSync(process.argv[3], out.join("\n") + "\n");
