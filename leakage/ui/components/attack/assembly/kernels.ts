// The arithmetic of ../kernels.js in AssemblyScript, with four float32 numbers at once. scripts/build_kernels.sh compiles this folder.
export { addCombinations, addInnerProducts, copyRows } from './planes';
export { addProduct, gemmNT } from './products';
export { sigmoid } from './sigmoid';
export { signedStep } from './steps';
export { addAndDot, combine, exactDot as dot, multiply, productRule } from './vectors';
